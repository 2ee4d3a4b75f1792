import type { Clock } from '../../core/clock.ts'
import type { Usage } from '../../core/usage.ts'
import type { VendorCall } from '../operation.ts'
import type { ResponsesRequest, ResponsesTool } from './responses-request.ts'

/** Status of a response. */
export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed'

/** Why an answer is incomplete. */
export type IncompleteReason = 'max_output_tokens' | 'content_filter'

/** An item of an answer, as callers read it. */
export interface OutputItem {
  type: string
  id: string
  [field: string]: unknown
}

/** Usage as callers of this dialect read it. `input_tokens` includes tokens read from or written to a cache. */
export interface ResponseUsage {
  input_tokens: number
  input_tokens_details: { cached_tokens: number; cache_write_tokens: number }
  output_tokens: number
  output_tokens_details: { reasoning_tokens: number }
  total_tokens: number
}

/** Writes usage in the dialect. Clients read all counts unchecked, so counts that the vendor did not report are 0. */
export function responseUsage(usage: Usage | undefined): ResponseUsage {
  const input = usage?.inputTokens ?? 0
  const output = usage?.outputTokens ?? 0
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage?.cachedInputTokens ?? 0,
      cache_write_tokens: usage?.cacheWriteTokens ?? 0,
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage?.reasoningTokens ?? 0 },
    total_tokens: input + output,
  }
}

/** The parts of a response that are known before its answer. */
export interface ResponseFacts {
  readonly id: string
  /** Model id that the caller reads. */
  readonly model: string
  /** Unix milliseconds at which the call began. */
  readonly nowMs: number
  /** Clock for the end of the call. Defaults to `nowMs`. */
  readonly clock?: Pick<Clock, 'now'> | undefined
  readonly request: ResponsesRequest
}

/** Members that the answer adds to the facts. */
export interface ResponseEnding {
  readonly status: ResponseStatus
  readonly output: readonly OutputItem[]
  readonly usage: ResponseUsage | null
  readonly incomplete?: IncompleteReason | undefined
  readonly error?: { readonly code: string; readonly message: string } | undefined
}

/**
 * Builds the response object (OpenAI API reference, "The response object"). Clients read most members unchecked, so all of them are
 * present: values of the request, else the defaults of the API.
 */
export function responseObject(facts: ResponseFacts, ending: ResponseEnding): Record<string, unknown> {
  const { request, nowMs } = facts
  const secondsOf = (timeMs: number): number => Math.floor(timeMs / 1000)
  const conversation = conversationMember(request)
  return {
    id: facts.id,
    object: 'response',
    created_at: secondsOf(nowMs),
    completed_at: ending.status === 'completed' ? secondsOf(facts.clock?.now() ?? nowMs) : null,
    status: ending.status,
    background: false,
    error: ending.error ?? null,
    incomplete_details: ending.incomplete === undefined ? null : { reason: ending.incomplete },
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request['max_tool_calls'] ?? null,
    metadata: request.metadata ?? {},
    model: facts.model,
    output: ending.output,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    presence_penalty: 0,
    frequency_penalty: 0,
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: request['prompt_cache_key'] ?? null,
    reasoning: { effort: request.reasoning?.effort ?? null, summary: request.reasoning?.summary ?? null },
    safety_identifier: request['safety_identifier'] ?? null,
    service_tier: tierOf(request),
    store: request.store ?? true,
    temperature: request.temperature ?? 1,
    text: { ...request.text, format: request.text?.format ?? { type: 'text' } },
    tool_choice: request.tool_choice ?? 'auto',
    tools: (request.tools ?? []).map(shownTool),
    top_logprobs: request['top_logprobs'] ?? 0,
    top_p: request.top_p ?? 1,
    truncation: request['truncation'] ?? 'disabled',
    user: request.user ?? null,
    usage: ending.usage,
    ...conversation,
  }
}

/** Returns the requested tier, which decides the price of the answer. */
function tierOf({ service_tier: tier }: ResponsesRequest): unknown {
  return typeof tier === 'string' && tier !== 'auto' ? tier : 'default'
}

/** Returns a tool as the caller wrote it. Functions get all members, because clients read them unchecked. */
function shownTool(tool: ResponsesTool): ResponsesTool {
  return tool.type === 'function' ? { description: null, parameters: null, strict: null, ...tool } : tool
}

/** Returns the member that names the conversation of an answer, if the request named one. */
export function conversationMember({ conversation }: ResponsesRequest): { conversation?: { id: string } } {
  const id = typeof conversation === 'string' ? conversation : conversation?.id
  return id === undefined ? {} : { conversation: { id } }
}

/**
 * Returns members that name objects stored by the gateway: the conversation, unknown to the vendor, and the previous answer if the
 * vendor has another id for it.
 */
export function ownMembersOf({ conversation: call }: Pick<VendorCall<ResponsesRequest>, 'conversation'>): {
  readonly conversation?: { readonly id: string }
  readonly previous_response_id?: string
} {
  if (call?.original === undefined) return {}
  const request = call.original.request as ResponsesRequest
  const { previous_response_id: previous } = request
  const isOther = typeof previous === 'string' && previous !== call.previousUpstreamId
  return { ...conversationMember(request), ...(isOther ? { previous_response_id: previous } : {}) }
}

/** Whether to show reasoning. Only callers that requested a summary see it. */
export function showsReasoning({ reasoning }: ResponsesRequest): boolean {
  const summary = reasoning?.summary ?? reasoning?.['generate_summary']
  return typeof summary === 'string' && summary !== 'none'
}
