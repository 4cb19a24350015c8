-- Only so that this branch has no gap: goes when the branch whose number this is comes in.
SELECT 1;
