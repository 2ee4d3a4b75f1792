import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { answerAccess } from '../pipeline/kept-answers.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { EVENT_STREAM, respondJson } from '../pipeline/respond.ts'
import type { PendingOutcome, StoredAnswerRequest } from '../pipeline/stored-answers.ts'
import { estimatedUsage } from '../pipeline/usage-estimate.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../stores/task-store.ts'
import { endTask } from './apply-report.ts'
import { chargedEnd } from './deferred-end.ts'
import type { DeferredRunner } from './deferred-runner.ts'
import { frozenCharge } from './frozen-prices.ts'
import { commit, type WakeWebhooks } from './update-task.ts'

/** How often the task of a stream that waits is looked at. */
const FOLLOW_INTERVAL_MS = 1_000

/** A sign of life is sent after so much silence. */
const SILENCE_MS = 15_000

type Exchange = Pick<StoredAnswerRequest, 'sink' | 'requestId'>

/** Answers that are not made yet: read, followed and cancelled by their owners. */
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
   * Answers a request about an answer that is not kept yet. An account sees its own only.
   * @throws GatewayError `invalid_request` for what cannot be done before the end.
   */
  async serve(context: PipelineContext, asked: StoredAnswerRequest): Promise<PendingOutcome> {
    const { principal, endpoint, id, action, request } = asked
    const task = await context.store.tasks.find(principal.accountId, id)
    if (task === undefined || task.details.endpoint !== endpoint.id || endpoint.deferral === undefined) return 'none'
    if (!OPEN_TASK_STATES.includes(task.state)) return 'ended'
    if (request.method === 'DELETE')
      throw new GatewayError('invalid_request', { message: 'Cannot delete a response in progress. Cancel it first.' })
    if (action === 'cancel') {
      await this.#cancel(context, task)
      return 'ended'
    }
    if (action !== '')
      throw new GatewayError('invalid_request', { message: 'The items of a response are listed once it has ended.' })
    const parameters = new URLSearchParams(request.query)
    if (parameters.get('stream') !== 'true') respondJson(asked.sink, asked.requestId, endpoint.deferral.record(task))
    else await this.follow(context, asked, task, startOf(parameters))
    return 'served'
  }

  /** Sends an answer as events: its beginning at once, and its content when it is made. */
  async follow(context: PipelineContext, exchange: Exchange, task: TaskRecord, startingAfter = -1): Promise<void> {
    const endpoint = context.endpoints.deferring(task.details.endpoint)
    if (endpoint?.deferral === undefined) throw new TypeError('only deferred answers are followed')
    const { sink, requestId } = exchange
    const { text, lastNumber } = endpoint.deferral.firstEvents(endpoint.deferral.record(task), startingAfter)
    sink.head(200, ['content-type', EVENT_STREAM, ...STREAM_HEADERS, 'x-request-id', requestId])
    sink.write(text === '' ? endpoint.deferral.keepAlive : text)
    try {
      if (!(await this.#untilEnded(context, sink, task, endpoint.deferral.keepAlive))) return sink.destroy()
      sink.end(await restOf(context, endpoint, task, Math.max(startingAfter, lastNumber)))
    } catch (error) {
      // A stream that has begun must not look whole.
      sink.destroy()
      throw error
    }
  }

  /** False: the caller has left, or the gateway closes. */
  async #untilEnded(context: PipelineContext, sink: ByteSink, task: TaskRecord, keepAlive: string): Promise<boolean> {
    const { clock, store } = context
    let lastWriteMs = clock.now()
    for (;;) {
      if (sink.closed || this.#runner.isStopped) return false
      const now = await store.tasks.find(task.accountId, task.id)
      if (now === undefined || !OPEN_TASK_STATES.includes(now.state)) return true
      if (clock.now() - lastWriteMs >= SILENCE_MS) {
        sink.write(keepAlive)
        lastWriteMs = clock.now()
      }
      await new Promise<Timer | undefined>((resolve) => {
        clock.schedule(FOLLOW_INTERVAL_MS, () => resolve(undefined))
      })
    }
  }

  /** Ends a task; nothing happens if it has ended meanwhile. What was sent to a vendor is charged with its prompt. */
  async #cancel(context: PipelineContext, task: TaskRecord): Promise<void> {
    const { details } = task
    const nowMs = context.clock.now()
    if (task.state === 'in_progress') {
      const usage = estimatedUsage(
        { estimate: details.heldUsage, bytesPerToken: 1, usualReasoningTokens: undefined },
        { outputBytes: 0, isUnseen: false },
      )
      const charge = { usage, amount: frozenCharge(details, details.variant, usage) }
      const end = chargedEnd(task, { state: 'cancelled', nowMs, details }, charge)
      await commit(context, task, end, this.#wakeWebhooks)
      this.#runner.abandon(task.id)
      return
    }
    const ended = await commit(context, task, endTask(task, details, { state: 'cancelled', nowMs }), this.#wakeWebhooks)
    // It was begun in between.
    if (ended.state === 'in_progress') await this.#cancel(context, ended)
  }
}

const STREAM_HEADERS = ['cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no']

async function restOf(
  context: PipelineContext,
  { kept }: Endpoint,
  { id, accountId, keyId }: TaskRecord,
  startingAfter: number,
): Promise<string> {
  const parameters = new URLSearchParams({ stream: 'true', starting_after: String(startingAfter) })
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
