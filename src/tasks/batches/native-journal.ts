import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import type { BatchEnd } from './batch-record.ts'

/** What a vendor's batch is made of: one path and one model at one vendor, sent with one of the operator's keys. */
export interface NativePlan {
  readonly vendor: string
  readonly credentialId: string
  /** Our id of the model. */
  readonly model: string
  /** The vendor's id of it. */
  readonly upstream: string
  readonly path: string
  /** How many requests its lines are, and their bytes with a line break behind each. */
  readonly requests: number
  readonly byteLength: number
}

/** What was done of a batch at a vendor, and what is about to be done where doing it twice would be paid twice. */
export type NativeStep =
  | { readonly step: 'begun' }
  | { readonly step: 'captured'; readonly plan: NativePlan }
  | { readonly step: 'uploaded'; readonly fileId: string }
  /** The creation is sent next. */
  | { readonly step: 'creating'; readonly atMs: number }
  /** It surely made no batch. */
  | { readonly step: 'refused'; readonly reason: string }
  | { readonly step: 'created'; readonly batchId: string; readonly atMs: number }
  /** The vendor has taken the cancellation. */
  | { readonly step: 'cancelling' }
  /** Nobody knows whether the vendor made a batch: its requests end with an error. */
  | { readonly step: 'lost' }
  /** The vendor is not waited for any more, and what it may bill is told. */
  | { readonly step: 'given-up' }
  /** Each result is an outcome. `rest`: what becomes of the requests that have none. */
  | { readonly step: 'collected'; readonly rest: BatchEnd | 'paced'; readonly results: readonly string[] }
  /** Requests without an outcome are ordinary calls from now on. */
  | { readonly step: 'paced'; readonly reason: string }

/** Another process goes on with the batch. */
export class JournalConflict extends Error {}

const PAGE = 100

/**
 * What was done of a batch at its vendor, step by step. A step is a row under its number, which can be written once: of two processes
 * that believe to have the batch only one can go on, and a process that comes after one that died knows what it did.
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

  /** The latest step of a kind; undefined: there is none. */
  latest<Kind extends NativeStep['step']>(kind: Kind): Extract<NativeStep, { step: Kind }> | undefined {
    return this.#steps.findLast((step): step is Extract<NativeStep, { step: Kind }> => step.step === kind)
  }

  count(kind: NativeStep['step']): number {
    return this.#steps.filter(({ step }) => step === kind).length
  }

  /** The creation that was sent, or was about to be, and whose outcome is not known. */
  get openCreation(): { readonly atMs: number } | undefined {
    const last = this.#steps.findLast(({ step }) => step === 'creating' || step === 'refused' || step === 'created')
    return last?.step === 'creating' ? last : undefined
  }

  /** @throws JournalConflict if another process has written a step since this one read it. */
  async append(step: NativeStep): Promise<void> {
    const row = { isAnswered: false, text: JSON.stringify(step), usage: undefined, amount: 0n }
    const line = this.#steps.length
    if (!(await this.#settings.outcomes.add(this.#id, { ...row, line }, this.#expiresAtMs)))
      throw new JournalConflict('another process goes on with the batch')
    this.#steps.push(step)
  }
}

/** Under which id the steps of a batch are kept. */
export function journalId(batchId: string): string {
  return `${batchId}_native`
}

/** Name of the file with the lines for the vendor. */
export function linesId(batchId: string): string {
  return `${batchId}_lines`
}
