"""What a run showed: the store of its cases, and the verdict on each overload that follows from them."""
