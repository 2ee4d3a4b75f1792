import type { Endpoint } from '../../endpoints/endpoint.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import type { BatchEnd } from './batch-record.ts'
import { BatchRun, type RequestTries, type StopReason } from './batch-run.ts'
import { NativeRun } from './native-run.ts'

/** How work on a batch went. */
export type WorkResult =
  /** Each request has its outcome, or is not made any more. `vendor`: whose batch API made it; absent: none. */
  | { readonly kind: 'ended'; readonly end: BatchEnd; readonly vendor?: string | undefined }
  /** To be taken again at this time; Unix milliseconds. */
  | { readonly kind: 'waits'; readonly untilMs: number }

/** The work on one batch while this process has it: at the vendor's batch API, or by ordinary calls where that takes it not. */
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

  /** Begins nothing further; what is under way ends. */
  stop(reason: StopReason): void {
    this.#native.stop(reason)
    this.#paced.stop(reason)
  }

  /** Begins no further ordinary call. The work with a vendor's batch API is short, and is not begun anew for the sake of others. */
  makeRoom(): void {
    this.#paced.stop('put-back')
  }

  /** Cuts off what is under way, too. */
  abort(): void {
    this.#native.abort()
    this.#paced.abort()
  }

  /** @throws JournalConflict when another process goes on with it, and whatever the stores throw; the batch can be taken again. */
  async run(): Promise<WorkResult> {
    const turn = await this.#native.run()
    if (turn.kind !== 'paced') return turn
    const reason = await this.#paced.run()
    return reason === 'put-back'
      ? { kind: 'waits', untilMs: this.#context.clock.now() }
      : { kind: 'ended', end: reason ?? 'completed' }
  }
}
