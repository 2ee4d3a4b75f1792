import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ModelAbilities } from './model-abilities.ts'

/** The first API version that refuses all sampling parameters on every model (Anthropic, "Migration 2026-10-21"). */
const VERSION_WITHOUT_SAMPLING = '2026-10-21'

/** What {@link samplingFor} goes by. */
export interface SamplingInput {
  readonly request: ChatRequest
  readonly abilities: ModelAbilities
  /** True when the request turns thinking on, which allows no other than default sampling. */
  readonly thinks: boolean
  /** The `anthropic-version` sent: a date. */
  readonly version: string
}

/**
 * Maps `temperature` (0 to 2 in chat, cut to 1 here) and `top_p`. Of the two the models take one; temperature wins.
 * What is cut or left out is reported.
 */
export function samplingFor(
  input: SamplingInput,
  report: (field: string) => void,
): { temperature?: number; top_p?: number } {
  const { temperature, top_p: topP } = input.request
  const refused =
    input.abilities.sampling === 'default_only' || input.thinks || input.version >= VERSION_WITHOUT_SAMPLING
  const hasTemperature = typeof temperature === 'number'
  if (hasTemperature && (refused || temperature > 1)) report('temperature')
  if (typeof topP === 'number' && (refused || hasTemperature)) report('top_p')
  if (refused) return {}
  if (hasTemperature) return { temperature: Math.min(temperature, 1) }
  return typeof topP === 'number' ? { top_p: topP } : {}
}
