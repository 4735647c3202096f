//! Where rows live: version chains, indexes, snapshots, reclamation.
