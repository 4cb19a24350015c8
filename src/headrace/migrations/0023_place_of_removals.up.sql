-- Holds the number until the branch removals is merged; delete this file then.
SELECT 1;
