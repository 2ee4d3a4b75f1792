import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'
import { withHookUnits } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { type CallerWork, readRefusal } from '../pipeline/authenticate.ts'
import type { Admitted } from '../pipeline/call-record.ts'
import { WHOLE_ANSWER_WAIT_MS } from '../pipeline/charge.ts'
import { estimatedUsage } from '../pipeline/estimate.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { EVENT_STREAM, respondJson } from '../pipeline/respond.ts'
import { answerAccess, type PendingOutcome, type StoredAnswerRequest } from '../pipeline/stored-answers.ts'
import { DEFAULT_TOKENS_PER_SECOND } from '../pipeline/token-sizes.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../stores/task-store.ts'
import { endTask, type ReportOutcome } from './apply-report.ts'
import type { DeferredRunner } from './deferred-runner.ts'
import { frozenCharge } from './new-task.ts'
import { chargedEnd, commit, type WakeWebhooks } from './update-task.ts'

/** Interval between checks of the task that a waiting stream follows, in milliseconds. */
const FOLLOW_INTERVAL_MS = 1_000

/** Silence after which a heartbeat is sent, in milliseconds. */
const SILENCE_MS = 15_000

interface FollowedTask {
  readonly task: TaskRecord
  readonly keepAlive: string
  /** Read request, for which the rights of the caller are checked. */
  readonly work: Omit<CallerWork, 'end'>
}

type Exchange = Pick<StoredAnswerRequest, 'sink' | 'requestId' | 'principal'>

/** Serves answers that are not ready yet: their owners can read, follow and cancel them. */
export class DeferredAnswers {
  readonly #runner: DeferredRunner
  readonly #wakeWebhooks: WakeWebhooks

  constructor(runner: DeferredRunner, wakeWebhooks: WakeWebhooks) {
    this.#runner = runner
    this.#wakeWebhooks = wakeWebhooks
  }

  wake(): void {
    this.#runner.wake()
  }

  /**
   * Serves a request about an answer that is not stored yet. An account sees only its own answers.
   * @throws GatewayError `invalid_request` for an action that is not possible before the end.
   */
  async serve(context: PipelineContext, asked: StoredAnswerRequest): Promise<PendingOutcome> {
    const { principal, endpoint, id, action, request } = asked
    const task = await context.store.tasks.find(principal.accountId, id)
    if (task === undefined || task.details.endpoint !== endpoint.id || endpoint.deferral === undefined) return 'none'
    if (!OPEN_TASK_STATES.includes(task.state)) return 'ended'
    if (request.method === 'DELETE')
      throw new GatewayError('invalid_request', { message: 'Cannot delete a response in progress. Cancel it first.' })
    if (action === 'cancel') {
      await this.cancel(context, task)
      return 'ended'
    }
    if (action !== '')
      throw new GatewayError('invalid_request', { message: 'The items of a response are listed once it has ended.' })
    const parameters = new URLSearchParams(request.query)
    // A HEAD request does not wait for the end.
    const isFollowed = parameters.get('stream') === 'true' && request.method !== 'HEAD'
    if (isFollowed) await this.follow(context, asked, task, startOf(parameters))
    else respondJson(asked.sink, asked.requestId, endpoint.deferral.record(task))
    return 'served'
  }

  /**
   * Repeats, from its beginning, the stream of an earlier request with the same Idempotency-Key.
   * @throws GatewayError `response_not_found` if the answer has been deleted.
   */
  async followAgain(context: PipelineContext, repeated: Admitted, taskId: string): Promise<void> {
    const { endpoint, principal, sink, requestId } = repeated
    const task = await context.store.tasks.find(principal.accountId, taskId)
    if (task === undefined) throw new GatewayError('response_not_found')
    if (OPEN_TASK_STATES.includes(task.state)) return await this.follow(context, repeated, task, -1, REPLAYED)
    const events = await restOf(context, endpoint, task, undefined)
    if (sink.closed) return
    sink.head(200, ['content-type', EVENT_STREAM, ...STREAM_HEADERS, 'x-request-id', requestId, ...REPLAYED])
    sink.end(events)
  }

  /** Sends an answer as events: the beginning immediately, and the content when it is ready. */
  async follow(
    context: PipelineContext,
    exchange: Exchange,
    task: TaskRecord,
    startingAfter = -1,
    headers: readonly string[] = [],
  ): Promise<void> {
    const endpoint = context.endpoints.deferring(task.details.endpoint)
    if (endpoint?.deferral === undefined) throw new TypeError('only deferred answers are followed')
    const { sink, requestId, principal: caller } = exchange
    const { text, lastNumber } = endpoint.deferral.firstEvents(endpoint.deferral.record(task), startingAfter)
    sink.head(200, ['content-type', EVENT_STREAM, ...STREAM_HEADERS, 'x-request-id', requestId, ...headers])
    const sentNumber = Math.max(startingAfter, lastNumber)
    const keepAlive = endpoint.deferral.keepAlive(sentNumber)
    sink.write(text === '' ? keepAlive : text)
    try {
      const work = { caller, endpointIds: [endpoint.id], model: undefined }
      const hasEnded = await this.#untilEnded(context, sink, { task, keepAlive, work })
      if (GatewayError.isInstance(hasEnded)) return sink.end(endpoint.errors.streamEvent(hasEnded))
      if (!hasEnded) return sink.destroy()
      sink.end(await restOf(context, endpoint, task, sentNumber))
    } catch (error) {
      // A stream that has begun must not look complete.
      sink.destroy()
      throw error
    }
  }

  /** Returns `false` if the caller disconnects or the gateway closes, and an error if the caller may no longer read the answer. */
  async #untilEnded(
    context: PipelineContext,
    sink: ByteSink,
    { task, keepAlive, work }: FollowedTask,
  ): Promise<boolean | GatewayError> {
    const { clock, store } = context
    let lastWriteMs = clock.now()
    for (;;) {
      if (sink.closed || this.#runner.isStopped) return false
      const now = await store.tasks.find(task.accountId, task.id)
      if (now === undefined || !OPEN_TASK_STATES.includes(now.state)) return true
      const refusal = await readRefusal(context, work)
      // A frozen account can still read its answers.
      if (refusal !== undefined && refusal.code !== 'account_frozen') return refusal
      if (clock.now() - lastWriteMs >= SILENCE_MS) {
        sink.write(keepAlive)
        lastWriteMs = clock.now()
      }
      await new Promise<Timer | undefined>((resolve) => {
        clock.schedule(FOLLOW_INTERVAL_MS, () => resolve(undefined))
      })
    }
  }

  /** Ends a task. Has no effect if it ended in the meantime. */
  async cancel(context: PipelineContext, task: TaskRecord): Promise<void> {
    const { settlementRetries } = context
    // The run may have ended with an answer that is not stored yet.
    if (task.state === 'in_progress' && settlementRetries.size > 0) await settlementRetries.flush()
    const now =
      task.state === 'in_progress' && (await this.#runner.cancel(task.id))
        ? await context.store.tasks.find(task.accountId, task.id)
        : await commit(context, task, cancelledEnd(context, task), this.#wakeWebhooks)
    // The run began in the meantime, or the store has not saved its end.
    if (now !== undefined && OPEN_TASK_STATES.includes(now.state)) await this.cancel(context, now)
  }
}

/**
 * End of a task that this process does not run. If another process runs it, that process notices by itself and charges the vendor's
 * output as for a caller that disconnects.
 */
function cancelledEnd({ clock }: PipelineContext, task: TaskRecord): ReportOutcome {
  const { details, holdId } = task
  const end = { state: 'cancelled', nowMs: clock.now() } as const
  if (task.state !== 'in_progress') return endTask(task, details, end)
  const { heldUsage } = details
  const tokensPerSecond = DEFAULT_TOKENS_PER_SECOND
  const measured = { estimate: heldUsage, bytesPerToken: 1, usualReasoningTokens: undefined, tokensPerSecond }
  const stoppedAfterMs = end.nowMs - task.updatedAtMs + WHOLE_ANSWER_WAIT_MS
  const isUnseen = holdId !== undefined
  const left = estimatedUsage(measured, { outputBytes: 0, isUnseen, isStopped: true, stoppedAfterMs })
  const usage = withHookUnits(left, heldUsage.hookUnits ?? 0)
  return chargedEnd(task, { ...end, details }, { usage, amount: frozenCharge(details, details.variant, usage) })
}

const STREAM_HEADERS = ['cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no']
const REPLAYED = ['idempotent-replayed', 'true']

async function restOf(
  context: PipelineContext,
  { kept }: Endpoint,
  { id, accountId, keyId }: TaskRecord,
  startingAfter: number | undefined,
): Promise<string> {
  const parameters = new URLSearchParams({ stream: 'true' })
  if (startingAfter !== undefined) parameters.set('starting_after', String(startingAfter))
  const access = answerAccess(context, { accountId, keyId, tier: 'paid' })
  const reply = await kept?.read({ id, action: '', parameters }, access)
  return reply !== undefined && 'events' in reply ? reply.events : ''
}

function startOf(parameters: URLSearchParams): number {
  const after = parameters.get('starting_after')
  if (after === null) return -1
  if (/^\d{1,9}$/.test(after)) return Number(after)
  throw new GatewayError('invalid_request', {
    message: 'starting_after: must be a sequence number',
    param: 'starting_after',
  })
}
