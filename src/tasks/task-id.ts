/** What an id in a path may look like: ours, or a vendor's. Anything else is unknown before a store is asked. */
const TASK_ID = /^[A-Za-z0-9_-]{1,128}$/

/** True for text that may be the id of a task. */
export function isTaskId(text: string): boolean {
  return TASK_ID.test(text)
}
