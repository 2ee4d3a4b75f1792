import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { longestReport, type Recording } from './audio-length.ts'

/**
 * Reads the usage that a vendor reports (OpenAI API, "Create transcription"): the tokens of `usage`, else its `seconds`, else the
 * `duration` of the answer. Returns `undefined` without a report, so that the length is measured here. A count of 0 is ignored,
 * because a recording has some length. An impossible report becomes an implausible number, so that it is replaced and reported.
 */
export function transcriptionUsage(answer: Readonly<Record<string, unknown>>, recording: Recording): Usage | undefined {
  const reported = isJsonObject(answer['usage']) ? answer['usage'] : {}
  const tokens = tokensIn(reported)
  if (tokens !== undefined) return tokens
  for (const value of [reported['seconds'], answer['duration']]) {
    const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof seconds === 'number' && seconds !== 0) return heardSeconds(seconds, recording)
  }
  return undefined
}

/** Converts seconds that a vendor reports to usage. */
export function heardSeconds(seconds: number, recording: Recording): Usage {
  return { audioSeconds: seconds <= longestReport(recording) ? seconds : Number.POSITIVE_INFINITY }
}

function tokensIn(usage: Readonly<Record<string, unknown>>): Usage | undefined {
  const { input_tokens: input, output_tokens: output, input_token_details: details } = usage
  if (typeof input !== 'number' || input === 0) return undefined
  const audio = isJsonObject(details) ? details['audio_tokens'] : undefined
  return {
    inputTokens: input,
    ...(typeof audio === 'number' ? { inputAudioTokens: audio } : {}),
    ...(typeof output === 'number' ? { outputTokens: output } : {}),
  }
}

/** Returns usage in the dialect, or `undefined` if nothing is known. */
export function shownTranscriptionUsage(usage: Usage | undefined, reported: Usage | undefined): object | undefined {
  const { inputTokens, inputAudioTokens = 0, outputTokens = 0, audioSeconds } = usage ?? {}
  const isByTokens = reported?.inputTokens !== undefined
  if (!isByTokens && audioSeconds !== undefined) return { type: 'duration', seconds: audioSeconds }
  if (inputTokens === undefined) return undefined
  return {
    type: 'tokens',
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    input_token_details: { audio_tokens: inputAudioTokens, text_tokens: inputTokens - inputAudioTokens },
  }
}
