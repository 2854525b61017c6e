/* FFTW's own MPI transform, or PFFT's, forward and backward on slabs, with transposed output: what `rote bench` measures
 * Rote against.
 *
 *     mpicc -O2 program.c -o program -lfftw3_mpi -lfftw3 -lm           (with -DPFFT: -lpfft before the other libraries)
 *     mpiexec -n 2 ./program 128x128x128 c2c ROUNDS SECONDS [WISDOM]   (with -DSINGLE: pfftf, fftw3f_mpi and fftw3f)
 *
 * c2c or r2c, of order 2 or more, out of place. Plans are measured (FFTW_MEASURE), or read from the file WISDOM, into
 * which they are written; PFFT also tunes its transpositions. Prints a line `ranks P FFTW-VERSION`, then a line per round:
 * the seconds of one forward and backward transform, the most of any rank. A round repeats them for about SECONDS. Ends
 * with status 1, and says so, if the results are wrong.
 */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef PFFT
#include <pfft.h>
#else
#include <fftw3-mpi.h>
#endif

#ifdef SINGLE
#define FFTW(name) fftwf_##name
#define ITS_OWN(name) pfftf_##name
#define TOLERANCE 1e-3
typedef float real;
#else
#define FFTW(name) fftw_##name
#define ITS_OWN(name) pfft_##name
#define TOLERANCE 1e-10
typedef double real;
#endif
typedef FFTW(complex) element;

#define MAX_ORDER 16

typedef struct {
    int order, is_real;
    ptrdiff_t n[MAX_ORDER], half[MAX_ORDER]; /* the shape, and that of the spectrum */
    ptrdiff_t size, planes;                  /* of this rank: elements to allocate, and its part of mode 0 */
} work;

#ifdef PFFT
typedef ITS_OWN(plan) plan;
static MPI_Comm line; /* the ranks as a grid of order 1 */

static void start_library(void)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ITS_OWN(init)();
    ITS_OWN(create_procmesh)(1, MPI_COMM_WORLD, &ranks, &line);
}

static void share_out(work *w)
{
    ptrdiff_t in[MAX_ORDER], in_start[MAX_ORDER], out[MAX_ORDER], out_start[MAX_ORDER];
    unsigned flags = PFFT_TRANSPOSED_OUT | (w->is_real ? PFFT_PADDED_R2C : 0);
    w->size = w->is_real
        ? ITS_OWN(local_size_dft_r2c)(w->order, w->n, line, flags, in, in_start, out, out_start)
        : ITS_OWN(local_size_dft)(w->order, w->n, line, flags, in, in_start, out, out_start);
    w->planes = in[0];
}

static plan forward(const work *w, element *x, element *X)
{
    unsigned flags = PFFT_TRANSPOSED_OUT | PFFT_MEASURE | PFFT_TUNE | PFFT_DESTROY_INPUT;
    return w->is_real
        ? ITS_OWN(plan_dft_r2c)(w->order, w->n, (real *)x, X, line, PFFT_FORWARD, flags | PFFT_PADDED_R2C)
        : ITS_OWN(plan_dft)(w->order, w->n, x, X, line, PFFT_FORWARD, flags);
}

static plan backward(const work *w, element *X, element *y)
{
    unsigned flags = PFFT_TRANSPOSED_IN | PFFT_MEASURE | PFFT_TUNE | PFFT_DESTROY_INPUT;
    return w->is_real
        ? ITS_OWN(plan_dft_c2r)(w->order, w->n, X, (real *)y, line, PFFT_BACKWARD, flags | PFFT_PADDED_C2R)
        : ITS_OWN(plan_dft)(w->order, w->n, X, y, line, PFFT_BACKWARD, flags);
}

static void execute(plan made) { ITS_OWN(execute)(made); }
#else
typedef FFTW(plan) plan;

static void start_library(void) { FFTW(mpi_init)(); }

static void share_out(work *w)
{
    ptrdiff_t start, other, other_start, block = FFTW_MPI_DEFAULT_BLOCK;
    w->size = FFTW(mpi_local_size_many_transposed)(w->order, w->half, 1, block, block, MPI_COMM_WORLD, &w->planes,
        &start, &other, &other_start);
}

static plan forward(const work *w, element *x, element *X)
{
    unsigned flags = FFTW_MEASURE | FFTW_MPI_TRANSPOSED_OUT;
    return w->is_real ? FFTW(mpi_plan_dft_r2c)(w->order, w->n, (real *)x, X, MPI_COMM_WORLD, flags)
                      : FFTW(mpi_plan_dft)(w->order, w->n, x, X, MPI_COMM_WORLD, FFTW_FORWARD, flags);
}

static plan backward(const work *w, element *X, element *y)
{
    unsigned flags = FFTW_MEASURE | FFTW_MPI_TRANSPOSED_IN;
    return w->is_real ? FFTW(mpi_plan_dft_c2r)(w->order, w->n, X, (real *)y, MPI_COMM_WORLD, flags)
                      : FFTW(mpi_plan_dft)(w->order, w->n, X, y, MPI_COMM_WORLD, FFTW_BACKWARD, flags);
}

static void execute(plan made) { FFTW(execute)(made); }
#endif

static void end(int status, const char *text)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && text) fprintf(stderr, "program: %s\n", text);
    MPI_Finalize();
    exit(status);
}

static double most(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static double seconds(plan there, plan back, long repetitions)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long i = 0; i < repetitions; i++) {
        execute(there);
        execute(back);
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
    work w;
    int rank, ranks;
    w.order = count < 5 ? 0 : parse(args[1], w.n);
    if (w.order < 2) end(2, "usage: program 128x128x128 c2c|r2c ROUNDS SECONDS [WISDOM], of order 2 or more");
    start_library();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    w.is_real = !strcmp(args[2], "r2c");
    double span = atof(args[4]), points = 1;

    /* A block of a real tensor has its last mode padded to the size of the half spectrum. */
    memcpy(w.half, w.n, sizeof w.n);
    if (w.is_real) w.half[w.order - 1] = w.n[w.order - 1] / 2 + 1;
    share_out(&w);
    ptrdiff_t row = w.half[w.order - 1], filled = w.is_real ? w.n[w.order - 1] : 2 * row, rows = w.planes;
    for (int m = 0; m < w.order; m++) points *= w.n[m];
    for (int m = 1; m < w.order - 1; m++) rows *= w.n[m];
    element *x = FFTW(alloc_complex)(w.size), *X = FFTW(alloc_complex)(w.size), *y = FFTW(alloc_complex)(w.size);
    if (w.size && !(x && X && y)) MPI_Abort(MPI_COMM_WORLD, 1);

    if (count > 5) {
        if (rank == 0) FFTW(import_wisdom_from_filename)(args[5]);
        FFTW(mpi_broadcast_wisdom)(MPI_COMM_WORLD);
    }
    plan there = forward(&w, x, X), back = backward(&w, X, y);
    if (!there || !back) end(1, "the library has no plan for this");
    if (count > 5) {
        FFTW(mpi_gather_wisdom)(MPI_COMM_WORLD);
        if (rank == 0) FFTW(export_wisdom_to_filename)(args[5]);
    }

    /* The library may overwrite what it reads, so the random values are made again to compare with. */
    real *given = (real *)x, *found = (real *)y;
    double sum[2] = {0, 0}, total[2], wrong = 0;
    srand(rank + 1);
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t k = 0; k < filled; k++) {
            given[2 * row * r + k] = rand() / (real)RAND_MAX;
            sum[w.is_real ? 0 : k % 2] += given[2 * row * r + k];
        }
    MPI_Allreduce(sum, total, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    execute(there); /* also warms up */
    if (rank == 0) wrong = fmax(fabs(creal(X[0]) - total[0]), fabs(cimag(X[0]) - total[1])) / points;
    execute(back);
    srand(rank + 1);
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t k = 0; k < filled; k++)
            wrong = fmax(wrong, fabs(found[2 * row * r + k] / points - rand() / (real)RAND_MAX));
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
