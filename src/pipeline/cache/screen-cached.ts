import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import type { Usage } from '../../core/usage.ts'
import type { StreamTransform } from '../../endpoints/stream-transform.ts'
import { screenedWhole, writtenAnswer } from '../answer-hooks.ts'
import type { Reserved } from '../call-record.ts'
import type { PipelineContext } from '../pipeline-context.ts'
import { ScreenedStream } from '../screened-stream.ts'
import { type AnswerScreen, type Screening, screeningOf } from '../shown-answer.ts'
import type { StreamEnd, StreamReceiver } from '../stream-call.ts'
import type { OpenStream } from '../vendor-response.ts'
import type { AnswerFacts } from './cached-answer.ts'

/** Answer from the cache after the hooks. */
export interface ScreenedHit {
  readonly chunks: readonly Buffer[]
  /** Whether it is charged. */
  readonly isCharged: boolean
}

/** Error that the caller gets instead of an answer from the cache. */
export interface DeniedHit {
  readonly error: GatewayError
  readonly isCharged: boolean
}

/**
 * Runs the current answer hooks on an answer that was stored before hooks. A stream is read completely before any of it is sent,
 * so a denial as an error has its own status. Never rejects.
 */
export async function screenCached(
  context: PipelineContext,
  reserved: Reserved,
  { isStream, usage, vendor }: AnswerFacts,
  chunks: readonly Buffer[],
): Promise<ScreenedHit | DeniedHit> {
  const model = reserved.chain[0]
  const screening = model === undefined ? undefined : screeningOf(context, reserved, model.id)
  if (model === undefined || screening === undefined) return { chunks, isCharged: true }
  const { jsonSchema } = screening
  const screen = { context, reserved, candidate: { model, vendor: { id: vendor } }, usage, jsonSchema }
  try {
    return await (isStream ? screenEvents : screenBody)(screen, screening, chunks)
  } catch (cause) {
    return { error: GatewayError.from(cause), isCharged: false }
  }
}

async function screenBody(
  screen: AnswerScreen,
  screening: Screening,
  chunks: readonly Buffer[],
): Promise<ScreenedHit | DeniedHit> {
  const { answer, error, isCharged } = await screenedWhole(screen, screening, chunks)
  if (error !== undefined) return { error, isCharged }
  return { chunks: answer === undefined ? chunks : [Buffer.from(writtenAnswer(screen.reserved, answer))], isCharged }
}

async function screenEvents(
  screen: AnswerScreen,
  screening: Screening,
  chunks: readonly Buffer[],
): Promise<ScreenedHit | DeniedHit> {
  const stream = new ScreenedStream(new KeptStream(chunks, screen.usage), screen, screening)
  const sent: Buffer[] = []
  const end = await new Promise<StreamEnd>((resolve) => {
    stream.attach({ onBytes: (bytes) => sent.push(Buffer.from(bytes as Uint8Array)), onStreamEnd: resolve })
  })
  const { denial } = stream
  const isCharged = denial === undefined || (!denial.isFault && denial.hook.chargesDenied)
  if (end.kind !== 'denied') return { chunks: sent, isCharged }
  if (denial?.denial.isRefusal !== true) return { error: end.error, isCharged: isCharged && end.isCharged }
  sent.push(Buffer.from(stream.transform.failed?.(end.error) ?? ''))
  return { chunks: sent, isCharged }
}

/** Stored stream that is available at once as a whole. */
class KeptStream implements OpenStream {
  readonly transform: StreamTransform
  readonly vendorRequestId = undefined
  readonly #chunks: readonly Buffer[]

  constructor(chunks: readonly Buffer[], usage: Usage | undefined) {
    this.#chunks = chunks
    this.transform = new KeptTransform(usage)
  }

  attach(receiver: StreamReceiver): void {
    for (const bytes of this.#chunks) receiver.onBytes(bytes)
    receiver.onStreamEnd({ kind: 'ended' })
  }

  // The stream is available as a whole, so there is nothing to pause or abort.
  pause(): void {}
  resume(): void {}
  readAtMost(): void {}
  abort(): void {}
}

/** Transform of a stored stream, which was complete. */
class KeptTransform implements StreamTransform {
  readonly hasContent = true
  readonly isComplete = true
  readonly atBoundary = true
  readonly failure = undefined
  readonly outputBytesSeen = 0
  readonly usage: Usage | undefined

  constructor(usage: Usage | undefined) {
    this.usage = usage
  }

  push(): undefined {
    return undefined
  }

  end(): undefined {
    return undefined
  }
}
