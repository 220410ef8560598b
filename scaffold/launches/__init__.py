"""How the kernel of an overload is called and what it binds: one launch, written in each of the languages."""
