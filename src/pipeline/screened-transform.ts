import type { GatewayError } from '../core/errors.ts'
import type { StreamTransform } from '../endpoints/stream-transform.ts'
import type { AnswerObject } from '../endpoints/texts.ts'

/** Screened versions of the texts that a transform repeats. */
interface ScreenedTexts {
  keepAlive(): Uint8Array | string
  closing(): Uint8Array | undefined
  failed(error: GatewayError): string
  kept(answer: AnswerObject): AnswerObject
}

/** Read-only view of a stream's transform whose texts are screened. Nothing can be pushed into it. */
export class ScreenedTransform implements StreamTransform {
  /** Only whole events are sent. */
  readonly atBoundary = true
  readonly #inner: StreamTransform
  readonly #texts: ScreenedTexts

  constructor(inner: StreamTransform, texts: ScreenedTexts) {
    this.#inner = inner
    this.#texts = texts
  }

  keepAlive(): Uint8Array | string {
    return this.#texts.keepAlive()
  }

  push(): never {
    throw new TypeError('a screened stream accepts no bytes')
  }

  end(): never {
    throw new TypeError('a screened stream accepts no bytes')
  }

  get hasContent(): boolean {
    return this.#inner.hasContent
  }

  get isComplete(): boolean {
    return this.#inner.isComplete
  }

  get failure(): StreamTransform['failure'] {
    return this.#inner.failure
  }

  get usage(): StreamTransform['usage'] {
    return this.#inner.usage
  }

  get countsUsage(): boolean {
    return this.#inner.countsUsage === true
  }

  get serviceTier(): string | undefined {
    return this.#inner.serviceTier
  }

  get outputBytesSeen(): number {
    return this.#inner.outputBytesSeen
  }

  get innerImagesSeen(): number | undefined {
    return this.#inner.innerImagesSeen
  }

  get hasTextEnded(): boolean {
    return this.#inner.hasTextEnded === true
  }

  get hasRunningUsage(): boolean {
    return this.#inner.hasRunningUsage === true
  }

  get isRefusal(): boolean {
    return this.#inner.isRefusal === true
  }

  get answerIds(): StreamTransform['answerIds'] {
    return this.#inner.answerIds
  }

  get keptAnswer(): StreamTransform['keptAnswer'] {
    const { keptAnswer } = this.#inner
    return keptAnswer && this.#texts.kept({ ...keptAnswer })
  }

  get closing(): Uint8Array | undefined {
    return this.#texts.closing()
  }

  failed(error: GatewayError): string {
    return this.#texts.failed(error)
  }
}
