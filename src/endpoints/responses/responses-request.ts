import { type CacheTime, chatCacheTime } from '../cache-marks.ts'

/**
 * The body of `POST /v1/responses` (OpenAI API reference, "Create a model response"), as far as the gateway reads it.
 * Everything else stays in it and passes to vendors that speak the dialect.
 */

/** One item of a conversation: a message, a call, the output of a call, reasoning, … A message may lack its type. */
export interface ResponsesItem {
  type?: string | null | undefined
  id?: string | null | undefined
  [field: string]: unknown
}

/** A tool with its type: `function`, `custom`, `namespace`, `web_search`, … */
export interface ResponsesTool {
  type: string
  [field: string]: unknown
}

/** How much a model reasons, from least to most. */
export type ResponsesEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** A request for a response. Fields that are absent stay absent; defaults are those of the API. */
export interface ResponsesRequest {
  model: string
  /** Text is one user message. Absent only beside what holds the conversation already. */
  input?: string | ResponsesItem[] | null
  /** System text of this request alone: later turns do not inherit it. */
  instructions?: string | null
  /** Upper bound of generated tokens, reasoning included; at least 16. */
  max_output_tokens?: number | null
  /** 0 to 2. */
  temperature?: number | null
  /** 0 to 1. */
  top_p?: number | null
  tools?: ResponsesTool[] | null
  tool_choice?: string | { type: string; [field: string]: unknown } | null
  /** True when absent. */
  parallel_tool_calls?: boolean | null
  text?: { format?: { type: string; [field: string]: unknown } | null; verbosity?: string | null } | null
  reasoning?: { effort?: ResponsesEffort | null; summary?: string | null; [field: string]: unknown } | null
  include?: string[] | null
  stream?: boolean | null
  /** May the answer be continued by its id? True when absent. */
  store?: boolean | null
  /** Id of the answer that is continued. */
  previous_response_id?: string | null
  conversation?: string | { id: string; [field: string]: unknown } | null
  /** Is the answer made after the request has ended? It is then read by its id. */
  background?: boolean | null
  /** Told when an answer in the background has ended; an extension of this gateway. */
  webhook_url?: string | null
  /** At most 16 pairs. */
  metadata?: Record<string, string> | null
  user?: string | null
  [field: string]: unknown
}

/** The items of a request: text is one user message, and no input is no item. */
export function inputItems({ input }: Pick<ResponsesRequest, 'input'>): readonly ResponsesItem[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : (input ?? [])
}

/** The type of an item: what has a role and no type is a message, and what has only an id is a reference. */
export function itemType(item: ResponsesItem): string {
  if (typeof item.type === 'string') return item.type
  return typeof item['role'] === 'string' ? 'message' : 'item_reference'
}

/** Ids that may be looked up later; others are replaced. */
const ITEM_ID = /^[A-Za-z0-9_-]{1,128}$/

/** Prefix of ids that the gateway gives to items that are no message. */
export const OWN_ITEM = 'item'

/** Can an item be looked up by this id? */
export function isItemId(id: unknown): id is string {
  return typeof id === 'string' && ITEM_ID.test(id)
}

/** The longest time that the marks of a request for a response ask for. */
export function responsesCacheTime(request: ResponsesRequest): CacheTime {
  const { tools, cache_control } = request
  return chatCacheTime({ messages: inputItems(request), tools, cache_control })
}
