/**
 * Values with the same effect as omitting the field, by field of a chat (OpenAI API reference, "Create chat
 * completion", defaults). `truncation` belongs to Responses, `speed` to speech and Messages.
 */
const NEUTRAL_VALUES: ReadonlyMap<string, readonly unknown[]> = new Map<string, readonly unknown[]>([
  ['n', [1]],
  ['best_of', [1]],
  ['temperature', [1]],
  ['top_p', [1]],
  ['presence_penalty', [0]],
  ['frequency_penalty', [0]],
  ['logprobs', [false]],
  ['top_logprobs', [0]],
  ['parallel_tool_calls', [true]],
  ['tool_choice', ['auto']],
  ['function_call', ['none', 'auto']],
  ['service_tier', ['auto', 'default']],
  ['store', [false]],
  ['truncation', ['disabled']],
  ['verbosity', ['medium']],
  ['speed', [1, 'standard']],
])

/** Fields without effect if empty. An empty `web_search_options` requests a search. */
const NEUTRAL_WHEN_EMPTY: ReadonlySet<string> = new Set([
  ...['functions', 'include', 'logit_bias', 'metadata', 'modalities', 'stop', 'tools'],
])

/** Whether a field of a request with this value has no effect. */
export function changesNothing(field: string, value: unknown): boolean {
  if (value === undefined || value === null) return true
  if (typeof value !== 'object') return NEUTRAL_VALUES.get(field)?.includes(value) === true
  if (field === 'modalities' && Array.isArray(value)) return value.every((modality) => modality === 'text')
  return NEUTRAL_WHEN_EMPTY.has(field) && Object.keys(value).length === 0
}
