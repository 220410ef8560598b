CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    started TEXT NOT NULL,
    finished TEXT,
    settings TEXT NOT NULL,
    environment TEXT NOT NULL
);
CREATE TABLE groups (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs(id),
    source TEXT NOT NULL,
    operator TEXT NOT NULL,
    variant TEXT NOT NULL,
    dtype TEXT NOT NULL,
    mode TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run, source, operator, variant, dtype, mode)
);
-- `grade` is NULL where it is the grade of the run's device.
CREATE TABLE cases (
    id INTEGER PRIMARY KEY,
    group_id INTEGER NOT NULL REFERENCES groups(id),
    position INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    stage TEXT NOT NULL,
    message TEXT NOT NULL,
    fallbacks TEXT NOT NULL,
    compared TEXT NOT NULL,
    max_error REAL,
    backward INTEGER NOT NULL,
    seconds REAL NOT NULL,
    inputs TEXT NOT NULL,
    grade TEXT,
    UNIQUE (group_id, position)
);
CREATE TABLE called_overloads (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    overload TEXT NOT NULL,
    outermost INTEGER NOT NULL,
    PRIMARY KEY (group_id, overload)
) WITHOUT ROWID;
CREATE TABLE covered (
    group_id INTEGER PRIMARY KEY REFERENCES groups(id),
    repeating INTEGER NOT NULL,
    levels BLOB NOT NULL
);
CREATE TABLE looked_inside (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    position INTEGER NOT NULL,
    overload TEXT NOT NULL,
    call TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (group_id, position)
) WITHOUT ROWID;
CREATE TABLE launches (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    overload TEXT NOT NULL,
    cases INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    kernels TEXT NOT NULL,
    stood_in TEXT NOT NULL,
    PRIMARY KEY (group_id, overload)
) WITHOUT ROWID;
-- `on_cpu`: operators that ran on the CPU inside of the overload's kernel, and copies to the host, with their numbers.
CREATE TABLE host_work (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    overload TEXT NOT NULL,
    calls INTEGER NOT NULL,
    graphs INTEGER NOT NULL,
    waits INTEGER NOT NULL,
    on_cpu TEXT NOT NULL,
    PRIMARY KEY (group_id, overload)
) WITHOUT ROWID;
-- `ulp_sensitivity`: whether a wrong result is ULP-sensitive; NULL where that was not tried.
CREATE TABLE case_kernels (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    position INTEGER NOT NULL,
    kernels TEXT NOT NULL,
    ulp_sensitivity TEXT,
    PRIMARY KEY (group_id, position)
) WITHOUT ROWID;
-- What explains every element of a wrong case that differs: names of predictions, and the largest error where it is
-- one of rounding.
CREATE TABLE predictions (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    position INTEGER NOT NULL,
    fits TEXT NOT NULL,
    PRIMARY KEY (group_id, position)
) WITHOUT ROWID;
CREATE TABLE shipped_kernels (
    run INTEGER PRIMARY KEY REFERENCES runs(id),
    names BLOB NOT NULL
);
-- Cases under torch.compile. A case has no row here if it ended its worker process or has no samples.
CREATE TABLE compiled (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    position INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    aten TEXT NOT NULL,
    kernels INTEGER NOT NULL,
    graphs INTEGER NOT NULL,
    breaks TEXT NOT NULL,
    recompilations INTEGER NOT NULL,
    reason TEXT NOT NULL,
    line TEXT NOT NULL,
    faulty_stage TEXT NOT NULL,
    source BLOB NOT NULL,
    PRIMARY KEY (group_id, position)
) WITHOUT ROWID;
CREATE TABLE module_rows (
    run INTEGER NOT NULL REFERENCES runs(id),
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
