import { Buffer } from 'node:buffer'
import type { TranscriptionAbilities } from '../../catalog/model-facts.ts'
import { unsupportedField } from '../field-errors.ts'
import { neverStreams, type Operation, type VendorCall, type WireRequest } from '../operation.ts'
import type { StreamTransform } from '../stream-transform.ts'
import { checkTranscriptionAbilities } from './check-transcription-abilities.ts'
import { renderTranscript } from './render-transcript.ts'
import type { Transcript } from './transcript.ts'
import type { TranscriptionFormat, TranscriptionRequest } from './transcription-request.ts'

/** Format that is requested from a vendor. */
export type AskedFormat = Extract<TranscriptionFormat, 'json' | 'verbose_json' | 'diarized_json'>

/** Transcription at one vendor. All functions are pure. */
export interface TranscriptionOperation {
  /** Returns the abilities of a model without a row of its own, by the vendor's id. */
  abilities(upstream: string): TranscriptionAbilities
  /** Writes the call. */
  toWire(call: VendorCall<TranscriptionRequest>, asked: AskedFormat): WireRequest
  /** Reads a whole 2xx answer. Returns `undefined` if it is invalid (the caller gets 502). */
  fromWire(chunks: readonly Uint8Array[], call: VendorCall<TranscriptionRequest>): Transcript | undefined
  /** Reads a streamed answer in the dialect. Absent if no model streams. */
  stream?(call: VendorCall<TranscriptionRequest>): StreamTransform
}

/** Part of a vendor that handles transcription. */
export interface TranscriptionOffer {
  readonly transcription?: TranscriptionOperation
}

/**
 * Creates the transcription operation of a vendor. It always requests the format that reports the usage, and converts it to the
 * caller's format, so a recording costs the same in every format.
 * @throws GatewayError naming the field for a model that does not support the request.
 */
export function createTranscriptionOperation(
  operation: TranscriptionOperation,
  call: VendorCall<TranscriptionRequest>,
): Operation {
  const { request, model, stream, billedUsage } = call
  const abilities = model.transcription ?? operation.abilities(model.upstream)
  checkTranscriptionAbilities(request, abilities)
  if (stream && (!abilities.streams || operation.stream === undefined))
    throw unsupportedField('stream', 'this model does not stream')
  const asked = askedFormat(request.response_format, abilities)
  return {
    requests: [operation.toWire(call, asked)],
    whole([answer]) {
      const transcript = answer && operation.fromWire(answer.chunks, call)
      if (transcript === undefined) return undefined
      const { usage, text, failure } = transcript
      const outputBytes = Buffer.byteLength(text)
      if (failure !== undefined) return { chunks: [], usage, outputBytes, failure }
      const billed = billedUsage?.(usage, outputBytes)
      const chunks = renderTranscript(transcript, { wanted: request.response_format, asked }, billed)
      return chunks && { chunks, usage, outputBytes }
    },
    stream: () => operation.stream?.(call) ?? neverStreams(),
  }
}

function askedFormat(wanted: TranscriptionFormat, { formats }: TranscriptionAbilities): AskedFormat {
  if (wanted === 'diarized_json') return wanted
  return formats.includes('verbose_json') ? 'verbose_json' : 'json'
}
