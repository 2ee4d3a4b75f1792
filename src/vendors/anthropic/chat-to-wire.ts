import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { fieldCheck, surchargesLeftOut, type TranslationTable } from '../shared/translated-chat-fields.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { conversationToWire, endsWithPrefill, loopLacksThinking, type MessagesTurn } from './conversation-to-wire.ts'
import { type MessagesEffort, modelAbilities } from './model-abilities.ts'
import { reasoningToWire, type ThinkingConfig } from './reasoning.ts'
import { answerFormatFor, type MessagesTool, type MessagesToolChoice, toolsToWire } from './tools-to-wire.ts'

/** The body of `POST /v1/messages` (Anthropic, Messages reference), as far as chat fills it. */
export interface MessagesRequest {
  model: string
  max_tokens: number
  system?: string
  messages: MessagesTurn[]
  /** 0 to 1. */
  temperature?: number
  /** 0 to 1. */
  top_p?: number
  stop_sequences?: string[]
  tools?: MessagesTool[]
  tool_choice?: MessagesToolChoice
  thinking?: ThinkingConfig
  output_config?: { effort?: MessagesEffort; format?: { type: 'json_schema'; schema: Record<string, unknown> } }
  metadata?: { user_id: string }
  stream?: true
}

/** Every field of a chat request at this vendor (Anthropic, "OpenAI SDK compatibility", field tables). */
export const CHAT_FIELDS = {
  model: 'mapped',
  messages: 'mapped',
  temperature: 'mapped',
  top_p: 'mapped',
  max_tokens: 'mapped',
  max_completion_tokens: 'mapped',
  n: 'refused',
  stream: 'mapped',
  stream_options: 'mapped',
  stop: 'mapped',
  presence_penalty: 'dropped',
  frequency_penalty: 'dropped',
  logit_bias: 'dropped',
  logprobs: 'dropped',
  top_logprobs: 'dropped',
  seed: 'dropped',
  tools: 'mapped',
  tool_choice: 'mapped',
  parallel_tool_calls: 'mapped',
  response_format: 'mapped',
  reasoning_effort: 'mapped',
  user: 'mapped',
  safety_identifier: 'mapped',
  audio: 'refused',
  function_call: 'refused',
  functions: 'refused',
  modalities: 'refused',
  metadata: 'dropped',
  moderation: 'dropped',
  prediction: 'dropped',
  prompt_cache_key: 'dropped',
  prompt_cache_options: 'dropped',
  prompt_cache_retention: 'dropped',
  service_tier: 'dropped',
  store: 'dropped',
  verbosity: 'dropped',
  web_search_options: 'dropped',
} as const satisfies TranslationTable

/** Billing fields of surcharges that the vendor never hears of. */
export const SURCHARGES_LEFT_OUT = surchargesLeftOut(CHAT_FIELDS)

const reportDroppedFields = fieldCheck(CHAT_FIELDS, { n: (value) => value === 1 })

/** Where and how the vendor is reached. */
export interface MessagesAddress {
  /** Path of the endpoint below the origin. */
  readonly path: string
  /** Value of the `anthropic-version` header: a date. */
  readonly version: string
}

/** The first API version that refuses all sampling parameters on every model (Anthropic, "Migration 2026-10-21"). */
const VERSION_WITHOUT_SAMPLING = '2026-10-21'

/** Longest `metadata.user_id` that the API takes. */
const MAX_USER_ID_CHARACTERS = 256

/**
 * Writes a chat as a Messages request.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field.
 */
export function chatToWire(call: VendorCall<ChatRequest>, address: MessagesAddress): WireRequest {
  const dropped = new Set<string>()
  const body = messagesRequestFor(call, address.version, (field) => void dropped.add(field))
  return {
    path: address.path,
    headers: [
      ...(call.apiKey === '' ? [] : ['x-api-key', call.apiKey]),
      'anthropic-version',
      address.version,
      'content-type',
      'application/json',
      'accept',
      call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding',
      'identity',
    ],
    body: JSON.stringify(body),
    dropped: [...dropped],
  }
}

function messagesRequestFor(
  call: VendorCall<ChatRequest>,
  version: string,
  report: (field: string) => void,
): MessagesRequest {
  const { request, model } = call
  const abilities = modelAbilities(model.upstream)
  reportDroppedFields(request, report)
  const { system, turns } = conversationToWire(request.messages, abilities, report)
  const isPrefilled = endsWithPrefill(turns)
  const maxTokens = maxTokensFor(request, model.limits.maxOutputTokens ?? abilities.maxOutputTokens)
  const budgetAllowed = !isPrefilled && !loopLacksThinking(turns)
  const reasoning = reasoningToWire({ effort: request.reasoning_effort, abilities, maxTokens, budgetAllowed }, report)
  const forcedToolChoice =
    abilities.forcedToolChoice === 'always' || (abilities.forcedToolChoice === 'without_thinking' && !reasoning.thinks)
  const structuredOutput = abilities.structuredOutput && !isPrefilled
  const answerFormat = answerFormatFor({ request, structuredOutput, forcedToolChoice })
  if (answerFormat.kind === 'instruction') system.push(answerFormat.text)
  // Thinking allows no other than default sampling.
  const refusesSampling =
    abilities.sampling === 'default_only' || reasoning.thinks || version >= VERSION_WITHOUT_SAMPLING
  const stopSequences = stopSequencesFor(request.stop, report)
  const userId = userIdFor(request, report)
  const outputConfig: MessagesRequest['output_config'] = {
    ...(reasoning.effort === undefined ? {} : { effort: reasoning.effort }),
    ...(answerFormat.kind === 'schema' ? { format: { type: 'json_schema', schema: answerFormat.schema } } : {}),
  }
  return {
    model: model.upstream,
    max_tokens: maxTokens,
    ...(system.length === 0 ? {} : { system: system.join('\n') }),
    messages: turns,
    ...samplingToWire(request, refusesSampling, report),
    ...(stopSequences.length === 0 ? {} : { stop_sequences: stopSequences }),
    ...toolsToWire({ request, answerFormat, forcedToolChoice, strictTools: abilities.structuredOutput, report }),
    ...(reasoning.thinking === undefined ? {} : { thinking: reasoning.thinking }),
    ...(Object.keys(outputConfig).length === 0 ? {} : { output_config: outputConfig }),
    ...(userId === undefined ? {} : { metadata: { user_id: userId } }),
    ...(call.stream ? { stream: true as const } : {}),
  }
}

// The API requires a bound, and refuses one above the model's own.
function maxTokensFor(request: ChatRequest, modelMaximum: number): number {
  return Math.min(request.max_completion_tokens ?? request.max_tokens ?? modelMaximum, modelMaximum)
}

function stopSequencesFor(stop: ChatRequest['stop'], report: (field: string) => void): string[] {
  const sequences = typeof stop === 'string' ? [stop] : (stop ?? [])
  const usable = sequences.filter((sequence) => sequence.trim() !== '')
  if (usable.length < sequences.length) report('stop')
  return usable
}

function userIdFor(request: ChatRequest, report: (field: string) => void): string | undefined {
  let chosen: string | undefined
  for (const field of ['safety_identifier', 'user']) {
    const userId = request[field]
    if (userId === undefined || userId === null || userId === '') continue
    const isUsable = typeof userId === 'string' && userId.length <= MAX_USER_ID_CHARACTERS
    if (isUsable && chosen === undefined) chosen = userId
    else if (userId !== chosen) report(field)
  }
  return chosen
}

/**
 * Maps `temperature` (0 to 2 in chat, at most 1 here) and `top_p`. The models take one of the two; temperature wins.
 * Reports lowered and dropped values.
 */
function samplingToWire(
  { temperature, top_p: topP }: ChatRequest,
  isRefused: boolean,
  report: (field: string) => void,
): { temperature?: number; top_p?: number } {
  const hasTemperature = typeof temperature === 'number'
  if (hasTemperature && (isRefused || temperature > 1)) report('temperature')
  if (typeof topP === 'number' && (isRefused || hasTemperature)) report('top_p')
  if (isRefused) return {}
  if (hasTemperature) return { temperature: Math.min(temperature, 1) }
  return typeof topP === 'number' ? { top_p: topP } : {}
}
