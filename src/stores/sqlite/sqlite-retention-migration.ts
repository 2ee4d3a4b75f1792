/** What finds tasks to be forgotten, and when a message was asked for again; 0: never. */
export const RETENTION_MIGRATION = `
CREATE INDEX signalbox_ended_tasks ON signalbox_tasks (updated_at_ms)
  WHERE state IN ('completed', 'failed', 'cancelled');
ALTER TABLE signalbox_deliveries ADD COLUMN resent_at_ms INTEGER NOT NULL DEFAULT 0;
`
