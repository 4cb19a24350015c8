-- Holds the number until the branch console is merged; delete this file then.
SELECT 1;
