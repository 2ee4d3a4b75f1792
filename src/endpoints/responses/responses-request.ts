import { type CacheTime, chatCacheTime } from '../cache-marks.ts'

/**
 * The body of `POST /v1/responses` (OpenAI API reference, "Create a model response"), limited to fields that the gateway reads.
 * Other fields are passed to vendors that accept the dialect.
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

/** A request for a response. Absent fields stay absent; defaults are those of the API. */
export interface ResponsesRequest {
  model: string
  /** A string is one user message. Optional if another member already contains the conversation. */
  input?: string | ResponsesItem[] | null
  /** System text of this request only. Later turns do not inherit it. */
  instructions?: string | null
  /** Maximum generated tokens, including reasoning. At least 16. */
  max_output_tokens?: number | null
  /** Sampling temperature, from 0 to 2. */
  temperature?: number | null
  /** Probability mass of nucleus sampling, from 0 to 1. */
  top_p?: number | null
  tools?: ResponsesTool[] | null
  tool_choice?: string | { type: string; [field: string]: unknown } | null
  /** Whether several tools may be called in parallel. Default true. */
  parallel_tool_calls?: boolean | null
  text?: { format?: { type: string; [field: string]: unknown } | null; verbosity?: string | null } | null
  reasoning?: { effort?: ResponsesEffort | null; summary?: string | null; [field: string]: unknown } | null
  include?: string[] | null
  stream?: boolean | null
  /** Whether the answer can be continued by its id. Default true. */
  store?: boolean | null
  /** Id of the answer to continue. */
  previous_response_id?: string | null
  conversation?: string | { id: string; [field: string]: unknown } | null
  /** Whether to run the request in the background. The answer is then read by its id. */
  background?: boolean | null
  /** Address that gets a webhook at the end of a background request. An extension of this gateway. */
  webhook_url?: string | null
  /** At most 16 pairs. */
  metadata?: Record<string, string> | null
  user?: string | null
  [field: string]: unknown
}

/** Returns the items of a request. A string is one user message; without input, the list is empty. */
export function inputItems({ input }: Pick<ResponsesRequest, 'input'>): readonly ResponsesItem[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : (input ?? [])
}

/** Returns the type of an item. An item with a role and no type is a message, and one with only an id is a reference. */
export function itemType(item: ResponsesItem): string {
  if (typeof item.type === 'string') return item.type
  return typeof item['role'] === 'string' ? 'message' : 'item_reference'
}

/** Ids that may be looked up later. Others are replaced. */
const ITEM_ID = /^[A-Za-z0-9_-]{1,128}$/

/** Prefix of ids that the gateway assigns to items other than messages. */
export const OWN_ITEM = 'item'

/** Whether an item can be looked up by this id. */
export function isItemId(id: unknown): id is string {
  return typeof id === 'string' && ITEM_ID.test(id)
}

/** Returns the longest time that the marks of a request ask for. */
export function responsesCacheTime(request: ResponsesRequest): CacheTime {
  const { tools, cache_control } = request
  return chatCacheTime({ messages: inputItems(request), tools, cache_control })
}
