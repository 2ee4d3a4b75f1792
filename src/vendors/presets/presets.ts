import type { Preset } from '../shared/preset.ts'
import { HOST_PRESETS } from './host-presets.ts'
import { LOCAL_PRESETS } from './local-presets.ts'
import { MODEL_MAKER_PRESETS } from './model-maker-presets.ts'

export type { ErrorWords } from '../shared/openai-error.ts'
export type {
  Preset,
  PresetDialect,
  PresetEndpoint,
  PresetReasoning,
  PresetRule,
  PresetToolChoice,
} from '../shared/preset.ts'

/**
 * Servers of OpenAI's dialect, by name, for `openaiCompatible(presets.groq, { apiKey })`. Survey of 2026-11-22. Presets contain no
 * models and no prices.
 */
export const presets = { ...MODEL_MAKER_PRESETS, ...HOST_PRESETS, ...LOCAL_PRESETS } as const satisfies Readonly<
  Record<string, Preset>
>
