/* FFTW's own MPI transform, forward and backward, with transposed output: what `rote bench` measures Rote against.
 *
 *     mpicc -O2 [-DSINGLE] fftw_mpi.c -o fftw_mpi -lfftw3_mpi -lfftw3 -lm      (SINGLE: -lfftw3f_mpi -lfftw3f)
 *     mpiexec -n 2 ./fftw_mpi 128x128x128 c2c ROUNDS SECONDS [WISDOM]
 *
 * c2c or r2c, of order 2 or more, out of place. Plans are measured (FFTW_MEASURE), or read from the file WISDOM, into
 * which they are written. Prints a line `ranks P FFTW-VERSION`, then a line per round: the seconds of one forward and
 * backward transform, the most of any rank. A round repeats them for about SECONDS. Ends with status 1, and says so, if
 * the results are wrong.
 */
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SINGLE
#define FFTW(name) fftwf_##name
typedef float real;
#define TOLERANCE 1e-3
#else
#define FFTW(name) fftw_##name
typedef double real;
#define TOLERANCE 1e-10
#endif

#define MAX_ORDER 16

static void end(int status, const char *text)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && text) fprintf(stderr, "fftw_mpi: %s\n", text);
    MPI_Finalize();
    exit(status);
}

static double most(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static double seconds(FFTW(plan) there, FFTW(plan) back, long repetitions)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long i = 0; i < repetitions; i++) {
        FFTW(execute)(there);
        FFTW(execute)(back);
    }
    return most(MPI_Wtime() - start) / repetitions;
}

static int parse(char *text, ptrdiff_t n[])
{
    int order = 0;
    for (char *part = strtok(text, "x"); part && order < MAX_ORDER; part = strtok(NULL, "x")) {
        n[order] = atol(part);
        if (n[order++] < 1) return 0;
    }
    return order;
}

int main(int count, char *args[])
{
    MPI_Init(&count, &args);
    FFTW(mpi_init)();
    ptrdiff_t n[MAX_ORDER], half[MAX_ORDER], here, start, other, other_start;
    int rank, ranks, order = count < 5 ? 0 : parse(args[1], n);
    if (order < 2) end(2, "usage: fftw_mpi 128x128x128 c2c|r2c ROUNDS SECONDS [WISDOM], of order 2 or more");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int is_real = !strcmp(args[2], "r2c");
    double span = atof(args[4]), points = 1;

    /* A block of a real tensor has its last mode padded to the size of the half spectrum. */
    memcpy(half, n, sizeof n);
    if (is_real) half[order - 1] = n[order - 1] / 2 + 1;
    ptrdiff_t size = FFTW(mpi_local_size_many_transposed)(order, half, 1, FFTW_MPI_DEFAULT_BLOCK,
        FFTW_MPI_DEFAULT_BLOCK, MPI_COMM_WORLD, &here, &start, &other, &other_start);
    ptrdiff_t row = half[order - 1], filled = is_real ? n[order - 1] : 2 * row, rows = here;
    for (int m = 0; m < order; m++) points *= n[m];
    for (int m = 1; m < order - 1; m++) rows *= n[m];
    FFTW(complex) *x = FFTW(alloc_complex)(size), *X = FFTW(alloc_complex)(size), *y = FFTW(alloc_complex)(size);
    if (size && !(x && X && y)) MPI_Abort(MPI_COMM_WORLD, 1);

    if (count > 5) {
        if (rank == 0) FFTW(import_wisdom_from_filename)(args[5]);
        FFTW(mpi_broadcast_wisdom)(MPI_COMM_WORLD);
    }
    unsigned flags = FFTW_MEASURE, out = flags | FFTW_MPI_TRANSPOSED_OUT, in = flags | FFTW_MPI_TRANSPOSED_IN;
    FFTW(plan) there = is_real
        ? FFTW(mpi_plan_dft_r2c)(order, n, (real *)x, X, MPI_COMM_WORLD, out)
        : FFTW(mpi_plan_dft)(order, n, x, X, MPI_COMM_WORLD, FFTW_FORWARD, out);
    FFTW(plan) back = is_real
        ? FFTW(mpi_plan_dft_c2r)(order, n, X, (real *)y, MPI_COMM_WORLD, in)
        : FFTW(mpi_plan_dft)(order, n, X, y, MPI_COMM_WORLD, FFTW_BACKWARD, in);
    if (!there || !back) end(1, "FFTW has no plan for this");
    if (count > 5) {
        FFTW(mpi_gather_wisdom)(MPI_COMM_WORLD);
        if (rank == 0) FFTW(export_wisdom_to_filename)(args[5]);
    }

    real *given = (real *)x, *found = (real *)y;
    double sum[2] = {0, 0}, total[2], wrong = 0;
    srand(rank + 1);
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t k = 0; k < filled; k++) {
            given[2 * row * r + k] = rand() / (real)RAND_MAX;
            sum[is_real ? 0 : k % 2] += given[2 * row * r + k];
        }
    MPI_Allreduce(sum, total, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    FFTW(execute)(there); /* also warms up */
    if (rank == 0) wrong = fmax(fabs(creal(X[0]) - total[0]), fabs(cimag(X[0]) - total[1])) / points;
    FFTW(execute)(back);
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t k = 0; k < filled; k++)
            wrong = fmax(wrong, fabs(found[2 * row * r + k] / points - given[2 * row * r + k]));
    if (!(most(wrong) < TOLERANCE)) end(1, "the results are wrong");

    if (rank == 0) printf("ranks %d %s\n", ranks, FFTW(version));
    for (long round = 0; round < atol(args[3]); round++) {
        double once = seconds(there, back, 1);
        double wanted = ceil(span / once);
        double each = wanted > 1 ? seconds(there, back, wanted > 10000 ? 10000 : (long)wanted) : once;
        if (rank == 0) {
            printf("%.9g\n", each);
            fflush(stdout);
        }
    }
    end(0, NULL);
}
