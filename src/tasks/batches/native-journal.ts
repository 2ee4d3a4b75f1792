import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import type { BatchEnd } from './batch-record.ts'

/** Contents of a vendor's batch: requests with one path and one model, sent to one vendor with one of the operator's keys. */
export interface NativePlan {
  readonly vendor: string
  readonly credentialId: string
  /** Id of the model in the gateway. */
  readonly model: string
  /** Id of the model at the vendor. */
  readonly upstream: string
  readonly path: string
  /** Number of lines. Each line is one request and ends with a line break, which `bytes` includes. */
  readonly requests: number
  readonly byteLength: number
}

/** Step of a batch at a vendor: done, or about to be done if doing it twice would cost twice. */
export type NativeStep =
  | { readonly step: 'begun' }
  | { readonly step: 'captured'; readonly plan: NativePlan }
  | { readonly step: 'uploaded'; readonly fileId: string }
  /** The next request creates the batch. */
  | { readonly step: 'creating'; readonly atMs: number }
  /** The vendor certainly has no batch. */
  | { readonly step: 'refused'; readonly reason: string }
  | { readonly step: 'created'; readonly batchId: string; readonly atMs: number }
  /** The vendor has accepted the cancellation. */
  | { readonly step: 'cancelling' }
  /** Creation with an unknown outcome: the requests end with an error. */
  | { readonly step: 'lost' }
  /** The gateway no longer waits for the vendor, and reports what the vendor may bill. */
  | { readonly step: 'given-up' }
  /** Each result is an outcome. `rest` decides what happens to requests without one. */
  | { readonly step: 'collected'; readonly rest: BatchEnd | 'paced'; readonly results: readonly string[] }
  /** Requests without an outcome become ordinary calls. */
  | { readonly step: 'paced'; readonly reason: string }

/** Another process continues the batch. */
export class JournalConflict extends Error {}

const PAGE = 100

/**
 * Journal of a batch's steps at its vendor. Each step is a numbered row that can be written only once. If two processes both hold
 * the batch, only one can continue, and after a crash the next process knows every step.
 */
export class NativeJournal {
  readonly #settings: BatchSettings
  readonly #id: string
  readonly #expiresAtMs: number
  readonly #steps: NativeStep[]

  private constructor(
    settings: BatchSettings,
    { id, expiresAtMs }: { readonly id: string; readonly expiresAtMs: number },
    steps: NativeStep[],
  ) {
    this.#settings = settings
    this.#id = id
    this.#expiresAtMs = expiresAtMs
    this.#steps = steps
  }

  static async read(settings: BatchSettings, batchId: string, expiresAtMs: number): Promise<NativeJournal> {
    const id = journalId(batchId)
    const steps: NativeStep[] = []
    for (;;) {
      const rows = await settings.outcomes.page(id, steps.length - 1, PAGE)
      for (const { text } of rows) steps.push(JSON.parse(text) as NativeStep)
      if (rows.length < PAGE) return new NativeJournal(settings, { id, expiresAtMs }, steps)
    }
  }

  get isEmpty(): boolean {
    return this.#steps.length === 0
  }

  /** Returns the latest step of a kind, or `undefined` if there is none. */
  latest<Kind extends NativeStep['step']>(kind: Kind): Extract<NativeStep, { step: Kind }> | undefined {
    return this.#steps.findLast((step): step is Extract<NativeStep, { step: Kind }> => step.step === kind)
  }

  count(kind: NativeStep['step']): number {
    return this.#steps.filter(({ step }) => step === kind).length
  }

  /** Creation that was sent, or was about to be sent, and whose outcome is unknown. */
  get openCreation(): { readonly atMs: number } | undefined {
    const last = this.#steps.findLast(({ step }) => step === 'creating' || step === 'refused' || step === 'created')
    return last?.step === 'creating' ? last : undefined
  }

  /** @throws JournalConflict if another process has written a step since this one read it. */
  async append(step: NativeStep): Promise<void> {
    const row = { isAnswered: false, text: JSON.stringify(step), usage: undefined, amount: 0n }
    const line = this.#steps.length
    if (!(await this.#settings.outcomes.add(this.#id, { ...row, line }, this.#expiresAtMs)))
      throw new JournalConflict('another process continues the batch')
    this.#steps.push(step)
  }
}

/** Id under which the steps of a batch are stored. */
export function journalId(batchId: string): string {
  return `${batchId}_native`
}

/** Id of the file with the lines for the vendor. */
export function linesId(batchId: string): string {
  return `${batchId}_lines`
}
