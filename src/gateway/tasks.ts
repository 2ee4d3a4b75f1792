import { GatewayError } from '../core/errors.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import { OPEN_TASK_STATES, type TaskPage, type TaskRecord, type TaskState } from '../stores/task-store.ts'
import type { BatchService } from '../tasks/batches/batch-requests.ts'
import type { BatchRunner } from '../tasks/batches/batch-runner.ts'
import type { DeferredAnswers } from '../tasks/deferred-answers.ts'
import { DEFERRED_CREDENTIAL_ID, isOwnTask } from '../tasks/task-record.ts'
import { cancelTask } from '../tasks/task-requests.ts'
import type { WakeWebhooks } from '../tasks/update-task.ts'
import { administer } from './audit.ts'
import { checkedPageSize, checkPageSize, type PageOptions, pageOf, partsOfPlace, placeOf } from './page-cursor.ts'

/** Selects a page of an account's tasks. */
export interface TasksPageOptions {
  /** Id of the last task of the previous page. */
  readonly after?: string | undefined
  /** Maximum number of tasks per page, from 1 to 1,000. Default 100. */
  readonly limit?: number | undefined
}

/** Selects a page of the tasks of all accounts. */
export interface AllTasksOptions extends PageOptions {
  /** Account whose tasks are listed. */
  readonly accountId?: string | undefined
  /** State of the listed tasks. */
  readonly state?: TaskState | undefined
}

const ALL_TASKS_OPTIONS = memberNames<AllTasksOptions>()('accountId state cursor limit')

/** Page of the tasks of all accounts. */
export interface AllTasksPage {
  /** Tasks, newest first. */
  readonly tasks: readonly TaskRecord[]
  /** Cursor of the next page, or `undefined` if there is none. */
  readonly next: string | undefined
}
const TASKS_PAGE_OPTIONS = memberNames<TasksPageOptions>()('after limit')

/** Long jobs at vendors, for operators. Every method throws a GatewayError. */
export interface Tasks {
  /**
   * Lists an account's tasks, newest first.
   * @throws GatewayError `invalid_request` for an invalid limit, or an `after` that is not a task of the account.
   */
  list(accountId: string, options?: TasksPageOptions): Promise<TaskPage>
  /**
   * Lists tasks of all accounts, newest first.
   * @throws GatewayError `invalid_request` for an invalid limit or cursor.
   */
  listAll(options?: AllTasksOptions): Promise<AllTasksPage>
  /** Returns an account's own task, by the gateway's id or the vendor's, or `undefined` if there is none. */
  get(accountId: string, taskId: string): Promise<TaskRecord | undefined>
  /**
   * Cancels a batch, a background answer, or a video that its vendor has not begun, as its owner would. Requests of a batch that are
   * in flight end and are charged; `cancellingAtMs` of its facts is set until then. A background answer is charged for the tokens
   * used so far.
   * @returns the task afterwards, or `undefined` if the account has no such task.
   * @throws GatewayError `task_not_cancellable` if it has ended, or its vendor runs it; `upstream_unavailable` if its vendor cannot
   *   be reached.
   */
  cancel(accountId: string, taskId: string): Promise<TaskRecord | undefined>
}

/** Creates the administration of a store's tasks. `ready` resolves once the store can be used. */
export function tasksOf(
  { tasks }: GatewayStore,
  ready: () => Promise<void>,
  cancelTask: (task: TaskRecord) => Promise<void>,
): Tasks {
  return {
    async list(accountId, options = {}) {
      checkMembers(options, TASKS_PAGE_OPTIONS, 'tasks.list')
      const { after, limit = 100 } = options
      return administer(ready, async () => {
        checkPageSize(limit)
        if (after !== undefined && (await tasks.find(accountId, after)) === undefined) {
          const message = `after: ${JSON.stringify(after)} is not a task of this account`
          throw new GatewayError('invalid_request', { message, param: 'after' })
        }
        return tasks.list(accountId, { limit, after })
      })
    },
    async listAll(options = {}) {
      checkMembers(options, ALL_TASKS_OPTIONS, 'tasks.listAll')
      const { accountId, state, cursor, limit = 100 } = options
      return administer(ready, async () => {
        const query = { accountId, state, after: placeOf(cursor), limit: checkedPageSize(limit) + 1 }
        const { rows, next } = pageOf(await tasks.listAll(query), limit, partsOfPlace)
        return { tasks: rows, next }
      })
    },
    get: (accountId, taskId) => administer(ready, () => tasks.find(accountId, taskId)),
    cancel: (accountId, taskId) =>
      administer(ready, async () => {
        const task = await tasks.find(accountId, taskId)
        if (task !== undefined) await cancelTask(task)
        return task && tasks.find(accountId, task.id)
      }),
  }
}

/** Parts of a gateway that run its tasks. */
export interface TaskRunners {
  readonly deferred: DeferredAnswers
  /** Returns `undefined` if the gateway has no batches. */
  readonly batches: () => LoadedBatches | undefined
  readonly wakeWebhooks: WakeWebhooks
}

/**
 * Cancels a task as its owner would.
 * @throws GatewayError `task_not_cancellable` if it has ended, or a vendor runs it already; `upstream_unavailable` if its vendor
 *   cannot be reached.
 */
export async function cancelAnyTask(
  context: PipelineContext,
  { deferred, batches, wakeWebhooks }: TaskRunners,
  task: TaskRecord,
): Promise<void> {
  const loaded = batches()
  if (!OPEN_TASK_STATES.includes(task.state)) throw new GatewayError('task_not_cancellable')
  if (task.credentialId === DEFERRED_CREDENTIAL_ID) await deferred.cancel(context, task)
  else if (!isOwnTask(task)) await cancelTask(context, task, wakeWebhooks)
  else if (loaded !== undefined) await loaded.engine.cancelBatch(context, loaded.runner, task)
  else throw new GatewayError('task_not_cancellable', { message: 'This gateway has no batches.' })
}

/** Loaded modules that run and serve files and batches. */
export interface LoadedBatches extends BatchService {
  readonly engine: typeof import('../tasks/batches/batch-engine.ts')
  readonly runner: BatchRunner
}

/**
 * Loads the modules of batches if the gateway has batches, so that other gateways do not keep them in memory. Returns `undefined` if
 * there are none.
 */
export async function loadBatches(
  context: PipelineContext,
  wakeWebhooks: WakeWebhooks,
  onBegin: () => void,
): Promise<LoadedBatches | undefined> {
  const { batches: settings } = context
  if (settings === undefined) return undefined
  const engine = await import('../tasks/batches/batch-engine.ts')
  return { engine, settings, runner: new engine.BatchRunner(context, settings, wakeWebhooks, onBegin) }
}
