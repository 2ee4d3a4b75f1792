import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { baseModelId } from '../shared/aws-model-ids.ts'
import { type ModelAbilities, modelAbilities } from '../shared/messages-abilities.ts'

/** File formats by media type (Bedrock, reference of `DocumentBlock`). */
export const DOCUMENT_FORMATS: ReadonlyMap<string, string> = new Map([
  ['application/pdf', 'pdf'],
  ['text/csv', 'csv'],
  ['application/msword', 'doc'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
  ['application/vnd.ms-excel', 'xls'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
  ['text/html', 'html'],
  ['text/plain', 'txt'],
  ['text/markdown', 'md'],
])

/** How to send requests to a model through Converse. */
export interface ConverseAbilities {
  readonly messages: ModelAbilities
  /** Whether the model accepts its own reasoning in later turns. */
  readonly readsReasoning: boolean
  /** Whether tool call ids are short. Default false: up to 64 letters, digits, `_` and `-`. */
  readonly hasShortToolIds?: boolean
  /** Returns the model's own fields for an effort, in `additionalModelRequestFields`, or `undefined` if it has no such effort. */
  reasoningFields?(effort: NonNullable<ChatRequest['reasoning_effort']>): Readonly<Record<string, unknown>> | undefined
}

const COMMON = { documentTypes: new Set(DOCUMENT_FORMATS.keys()) }

/** Abilities of models without an entry. Models with fewer abilities answer 400. */
const ANY: ModelAbilities = {
  ...COMMON,
  sampling: 'both',
  thinking: 'none',
  thinkingOff: 'unasked',
  hidesThinking: false,
  efforts: [],
  forcedToolChoice: 'never',
  prefill: true,
  structuredOutput: false,
  systemInPlace: false,
  maxOutputTokens: Number.POSITIVE_INFINITY,
  contextTokens: Number.POSITIVE_INFINITY,
  maxImageTokens: 1_600,
  cachedFromTokens: 1_000,
}

const EFFORTS_OF_THREE: Readonly<Record<string, string>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
}

/** Abilities by the start of a model's id without region (Bedrock, user guide, pages of each model). */
const FAMILIES: readonly (readonly [pattern: RegExp, abilities: ConverseAbilities])[] = [
  [
    /^amazon\.nova-2/,
    {
      messages: { ...ANY, forcedToolChoice: 'always', cachePoints: true },
      readsReasoning: true,
      reasoningFields(effort) {
        if (effort === 'none') return { reasoningConfig: { type: 'disabled' } }
        const maxReasoningEffort = EFFORTS_OF_THREE[effort]
        return maxReasoningEffort === undefined
          ? undefined
          : { reasoningConfig: { type: 'enabled', maxReasoningEffort } }
      },
    },
  ],
  [/^amazon\.nova/, { messages: { ...ANY, forcedToolChoice: 'always', cachePoints: true }, readsReasoning: false }],
  [/^mistral\./, { messages: { ...ANY, forcedToolChoice: 'always' }, readsReasoning: false, hasShortToolIds: true }],
  [
    /^openai\.gpt-oss/,
    {
      messages: ANY,
      readsReasoning: false,
      reasoningFields(effort) {
        const known = EFFORTS_OF_THREE[effort]
        return known === undefined ? undefined : { reasoning_effort: known }
      },
    },
  ],
]

const OTHERS: ConverseAbilities = { messages: ANY, readsReasoning: false }

const CLAUDE = /^anthropic\./

/** Returns the abilities of a model, by an id with or without region, or an ARN. */
export function converseAbilities(upstream: string): ConverseAbilities {
  const base = baseModelId(upstream)
  if (CLAUDE.test(base)) {
    // The service does not support system messages between turns.
    const messages = { ...COMMON, ...modelAbilities(base), systemInPlace: false, cachePoints: true }
    return { messages, readsReasoning: true }
  }
  return FAMILIES.find(([pattern]) => pattern.test(base))?.[1] ?? OTHERS
}
