import type { StoredAnswer } from '../stores/idempotency-store.ts'

/** The same request was answered before, under the same Idempotency-Key: its answer is given again. */
export class StoredReplay {
  readonly answer: StoredAnswer

  constructor(answer: StoredAnswer) {
    this.answer = answer
  }
}
