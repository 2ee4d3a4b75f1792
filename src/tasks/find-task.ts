import { GatewayError } from '../core/errors.ts'
import { reportFault, type StageContext } from '../stages/stage-context.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { vendorOf } from './ask-vendor.ts'
import { isTaskId } from './task-id.ts'
import { TASK_LEASE_MS } from './task-worker.ts'
import { POLLED_STATES, refreshTask, type WakeWebhooks } from './update-task.ts'

/**
 * An account's own task, by our id or the vendor's.
 * @throws GatewayError `task_not_found` for an unknown, foreign or malformed id alike.
 */
export async function findTask(context: StageContext, accountId: string, id: string): Promise<TaskRecord> {
  const task = isTaskId(id) ? await context.store.tasks.find(accountId, id) : undefined
  if (task === undefined) throw new GatewayError('task_not_found')
  return task
}

/**
 * The task, asked about at the vendor first when that is due. Callers who ask often do not make the gateway ask more often:
 * what is not due, or beyond the vendor's budget, or in another process's hands, is answered from the record.
 */
export async function upToDate(context: StageContext, task: TaskRecord, wake: WakeWebhooks): Promise<TaskRecord> {
  const nowMs = context.clock.now()
  const budget = vendorOf(context, task)?.videos.pollBudget
  if (budget === undefined || !POLLED_STATES.includes(task.state) || task.nextPollAtMs > nowMs) return task
  const { vendorAccount, id } = task
  try {
    const query = { vendorAccount, id, nowMs, leaseUntilMs: nowMs + TASK_LEASE_MS, limit: 1, budget }
    const [taken] = await context.store.tasks.leaseDue(query)
    return taken === undefined ? task : await refreshTask(context, taken, wake)
  } catch (error) {
    // The record as it was found is still an answer.
    reportFault(context, task.details.requestId, 'tasks', error)
    return task
  }
}
