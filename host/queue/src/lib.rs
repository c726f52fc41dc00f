//! backplane-queue
