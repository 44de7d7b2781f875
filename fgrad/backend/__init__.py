"""Back ends: what turns a Program into something that runs faster than its equations one by one."""
