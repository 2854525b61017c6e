"""Functions of tensors, by the rule that says where their result lies. Importing them enters them into the table."""

from __future__ import annotations

from . import agreed as agreed
from . import dtypes as dtypes
from . import elementwise as elementwise
from . import likes as likes
from . import matrices as matrices
from . import orthogonal as orthogonal
from . import products as products
