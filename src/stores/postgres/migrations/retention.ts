/** What finds tasks to be forgotten and forgets them, and when a message was asked for again; 0: never. */
export const RETENTION: readonly string[] = [
  `CREATE INDEX tasks_ended ON tasks (updated_at_ms) WHERE state IN ('completed', 'failed', 'cancelled')`,
  `ALTER TABLE deliveries ADD COLUMN resent_at_ms bigint NOT NULL DEFAULT 0`,

  // What waits for its messages is passed over, so that it does not stand in the way of the rest. The messages are locked with
  // their tasks: one that is asked for again at the same moment goes with its task, or keeps it.
  `CREATE FUNCTION forget_tasks(p_changed_until bigint, p_limit bigint) RETURNS integer
  LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '10s' AS $$
  DECLARE
    v_ids text[];
  BEGIN
    v_ids := ARRAY(
      SELECT t.id FROM tasks t
      WHERE t.state IN ('completed', 'failed', 'cancelled') AND t.updated_at_ms <= p_changed_until AND NOT EXISTS (
        SELECT 1 FROM deliveries d WHERE d.task_id = t.id AND d.state = 'pending'
      )
      ORDER BY t.updated_at_ms LIMIT p_limit FOR UPDATE OF t SKIP LOCKED
    );
    PERFORM 1 FROM deliveries d WHERE d.task_id = ANY (v_ids) ORDER BY d.id FOR UPDATE;
    v_ids := ARRAY(
      SELECT i.id FROM unnest(v_ids) AS i(id)
      WHERE NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.task_id = i.id AND d.state = 'pending')
    );
    DELETE FROM deliveries d WHERE d.task_id = ANY (v_ids);
    DELETE FROM tasks t WHERE t.id = ANY (v_ids);
    RETURN cardinality(v_ids);
  END $$`,
]
