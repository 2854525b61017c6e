"""The certificate of a plan: a second program that proves from the layouts alone that every element arrives.

A message is a product of one group of elements per component, and goes wherever grid modes let two ranks exchange data.
So the proof is about factors, not elements, and hardly takes longer on more ranks:
1. per component, the lattices contain each element once, and both sides have the same elements in each (`proof`);
2. per grid mode, data goes between the coordinates that its roles on both sides require: values arrive once,
   contributions enter once;
3. the lists of messages are these products, ascending by rank; the first contribution assigns, the others combine
   (this compares the lists of one rank, and of further ranks up to a total of `LISTED` messages; beyond `WHOLE`
   ranks, the messages between some pairs of them);
4. ranks that exchange data differ along the step's grid modes alone, and the step's kind can do the movement;
5. bytes, messages and peak memory are as claimed: they are counted again from the results of 1 and 2 (`recount`).

Between two grids, no grid mode is the same on both sides. Then a rank has coordinates on both: 2 is about the grid
modes of one side at a time, and in 5 each side's counts are taken at its own coordinates, and what a rank keeps at
both. In 3, more lists are compared, those of all ranks if they are few. Pairs of coordinates are listed if they are
few; of large lattices they are counted by digits, place by place.

No rank waits for another one in vain. A plan does not depend on the rank, so all ranks take the same steps in the same
order. The sub-grids of a step, whose ranks differ along its grid modes alone, partition the ranks, so in each step a
rank joins the collective of one sub-grid, with all its members. By 4, no rank outside takes part, and if a collective
needs all members, they work over each of its grid modes. By 3, both sides list the same messages.
"""
