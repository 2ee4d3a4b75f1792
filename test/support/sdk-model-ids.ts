import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const PACKAGES = join(import.meta.dirname, '../../node_modules')

/**
 * Returns the string literals of a union type in a declaration file of an installed package, in their order. An upgrade of the package
 * changes them, so a test that compares them with the catalog fails until the catalog is refreshed.
 * @throws Error if the file declares no such union.
 */
export function literalsOf(declarationFile: string, typeName: string): readonly string[] {
  const text = readFileSync(join(PACKAGES, declarationFile), 'utf8')
  const [, union = ''] = new RegExp(`\\btype ${typeName} =([^;]+);`).exec(text) ?? []
  const literals = [...union.matchAll(/(['"])(.+?)\1/g)].map(([, , literal]) => literal!)
  if (literals.length === 0) throw new Error(`${declarationFile} declares no union ${typeName}`)
  return literals
}

const chat = literalsOf('openai/resources/shared.d.ts', 'ChatModel')
const responsesOnly = literalsOf('openai/resources/shared.d.ts', 'ResponsesModel')

/** Model ids in the types of the vendors' SDKs. */
export const SDK_MODELS = {
  openai: [...chat, ...responsesOnly],
  /** Models that OpenAI's SDK accepts for Responses and not for chat completions. */
  openaiResponsesOnly: responsesOnly,
  anthropic: literalsOf('@anthropic-ai/sdk/resources/messages/messages.d.ts', 'Model'),
  gemini: literalsOf('@google/genai/dist/genai.d.ts', 'Model_2'),
} as const

/** Ids without a row in the snapshot, with the reason. Vendors list ended models: OpenAI, "Deprecations"; the SDK of Anthropic. */
export const NO_ROW: Readonly<Record<string, string>> = {
  'chatgpt-4o-latest': 'ended on 2026-02-17',
  'claude-mythos-preview': 'ended on 2026-06-30',
  'codex-mini-latest': 'ended on 2026-01-16',
  'computer-use-preview': 'ended on 2026-07-23',
  'gemini-omni-1.1-flash': 'makes films',
  'gemini-omni-1.2-flash': 'makes films',
  'gemini-omni-flash-preview': 'makes films',
  'gpt-3.5-turbo-16k': 'ended on 2024-09-13',
  'gpt-4-0125-preview': 'ended on 2026-03-26',
  'gpt-4-1106-preview': 'ended on 2026-10-23',
  'gpt-4-32k': 'ended on 2025-06-06',
  'gpt-4-turbo-preview': 'ended on 2026-03-26',
  'gpt-4-vision-preview': 'ended on 2024-12-06',
  'gpt-4o-mini-search-preview': 'ended on 2026-07-23',
  'gpt-4o-search-preview': 'ended on 2026-07-23',
  'lyria-3-clip-preview': 'makes music',
  'lyria-3-pro-preview': 'makes music',
  'lyria-3.5': 'makes music',
  'o1-mini': 'ended on 2025-10-27',
  'o1-preview': 'ended on 2025-07-28',
  'text-moderation-latest': 'ended on 2025-10-27',
  'text-moderation-stable': 'ended on 2025-10-27',
}

const SPOKEN = 'spoken answers cost more than written ones, and are not counted apart'
const UNPUBLISHED = 'no source of the snapshot tells a price'

/** Ids with a row and without a list price, with the reason. */
export const NO_PRICE: Readonly<Record<string, string>> = {
  'dall-e-2': 'sold by the image, and ended on 2026-05-12',
  'dall-e-3': 'sold by the image, and ended on 2026-05-12',
  'chatgpt-image-latest': UNPUBLISHED,
  'claude-mythos-5-1': UNPUBLISHED,
  'claude-mythos-5-2': UNPUBLISHED,
  'gemini-3.1-flash-tts-preview': UNPUBLISHED,
  'gemini-3.5-transcribe': UNPUBLISHED,
  'gemini-3.8-flash-lite-tts': UNPUBLISHED,
  'gemini-3.8-flash-tts': UNPUBLISHED,
  'gemini-nano-banana-2.1': 'the sources tell no price of its pictures',
  'gemini-robotics-er-1.6-preview': UNPUBLISHED,
  'gemma-4-26b-a4b-it': 'free of charge',
  'gemma-4-31b-it': 'free of charge',
  'gpt-4o-audio-preview': SPOKEN,
  'gpt-4o-mini-audio-preview': SPOKEN,
  'gpt-4o-mini-tts': 'sold by tokens, which speech is not counted in',
  'gpt-6-rosalind': UNPUBLISHED,
  'gpt-6.2-astra-law': UNPUBLISHED,
  'gpt-audio-mini': SPOKEN,
  'gpt-rosalind-research': UNPUBLISHED,
  'nano-banana-pro-preview': UNPUBLISHED,
  'omni-moderation-latest': 'free of charge',
  'omni-moderation-2024-09-26': 'free of charge',
}

/** Returns an id without the day of its version: `gpt-4-0613` and `o3-2025-04-16` are versions of `gpt-4` and `o3`. */
export function undated(id: string): string {
  return id.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{4})$/, '')
}
