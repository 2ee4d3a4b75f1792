import type { Endpoint } from '../../endpoints/endpoint.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import type { BatchEnd } from './batch-record.ts'
import { BatchRun, type RequestTries, type StopReason } from './batch-run.ts'
import { NativeRun } from './native-run.ts'

/** Result of the work on a batch. */
export type WorkResult =
  /** Each request has its outcome, or is no longer executed. `vendor` is the vendor whose batch API was used, if any. */
  | { readonly kind: 'ended'; readonly end: BatchEnd; readonly vendor?: string | undefined }
  /** The batch is leased again at this time, in Unix milliseconds. */
  | { readonly kind: 'waits'; readonly untilMs: number }

/** Work on one batch while this process holds it: at the vendor's batch API, or by ordinary calls if that API does not accept the batch. */
export class BatchWork {
  readonly #context: PipelineContext
  readonly #native: NativeRun
  readonly #paced: BatchRun

  constructor(
    context: PipelineContext,
    settings: BatchSettings,
    endpoint: Endpoint,
    turn: { readonly task: TaskRecord; readonly tries: RequestTries },
  ) {
    this.#context = context
    this.#native = new NativeRun(context, settings, endpoint, turn.task)
    this.#paced = new BatchRun(context, settings, endpoint, turn)
  }

  /** Starts nothing more; calls in flight end normally. */
  stop(reason: StopReason): void {
    this.#native.stop(reason)
    this.#paced.stop(reason)
  }

  /** Starts no more ordinary calls. The work with a vendor's batch API is short, so it is not interrupted for other batches. */
  makeRoom(): void {
    this.#paced.stop('put-back')
  }

  /** Aborts calls in flight, too. */
  abort(): void {
    this.#native.abort()
    this.#paced.abort()
  }

  /** @throws JournalConflict if another process continues the batch, and whatever the stores throw; the batch can be leased again. */
  async run(): Promise<WorkResult> {
    const turn = await this.#native.run()
    if (turn.kind !== 'paced') return turn
    const reason = await this.#paced.run()
    return reason === 'put-back'
      ? { kind: 'waits', untilMs: this.#context.clock.now() }
      : { kind: 'ended', end: reason ?? 'completed' }
  }
}
