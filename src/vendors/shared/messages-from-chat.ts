import { WorkBudget } from '../../core/calls-in-flight.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { changesNothing } from '../../endpoints/neutral-values.ts'
import type { VendorCall } from '../vendor.ts'
import { type MessagesEffort, type ModelAbilities, reasoningToWire, type ThinkingConfig } from './messages-abilities.ts'
import {
  type CachePointBlock,
  conversationToWire,
  endsWithPrefill,
  loopLacksThinking,
  type MessagesTurn,
  type TextBlock,
  textOf,
} from './messages-conversation.ts'
import { answerFormatFor, type MessagesTool, type MessagesToolChoice, toolsToWire } from './messages-tools.ts'
import { translationTable } from './translated-chat-fields.ts'

/** Caches the prompt up to here, for 5 minutes or an hour (Anthropic, "Prompt caching"). */
export interface CacheControl {
  type: 'ephemeral'
  ttl?: '1h'
}

/** A block of the system prompt. */
export type SystemBlock = TextBlock & { cache_control?: CacheControl }

/** The body of `POST /v1/messages` (Anthropic, Messages reference), limited to members that a chat uses. */
export interface MessagesRequest {
  model: string
  max_tokens: number
  /** Blocks only if the caller has set cache points. */
  system?: string | (SystemBlock | CachePointBlock)[]
  messages: MessagesTurn[]
  /** Sampling temperature, from 0 to 1. */
  temperature?: number
  /** Probability mass of nucleus sampling, from 0 to 1. */
  top_p?: number
  stop_sequences?: string[]
  tools?: MessagesTool[]
  tool_choice?: MessagesToolChoice
  thinking?: ThinkingConfig
  output_config?: { effort?: MessagesEffort; format?: { type: 'json_schema'; schema: Record<string, unknown> } }
  metadata?: { user_id: string }
  stream?: true
}

/** Maximum length of `metadata.user_id`. */
const MAX_USER_ID_CHARACTERS = 256

/** Rules for the translation of a chat. */
export interface MessagesRules {
  readonly abilities: ModelAbilities
  /** Whether every model rejects sampling parameters. */
  readonly refusesSampling: boolean
}

/**
 * Returns the body of a chat's Messages request.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field.
 */
export function messagesFromChat(
  call: VendorCall<ChatRequest>,
  { abilities, refusesSampling: isWithoutSampling }: MessagesRules,
  report: (field: string) => void,
): MessagesRequest {
  const { request, model } = call
  const { system, turns } = conversationToWire(request.messages, abilities, report)
  const isPrefilled = endsWithPrefill(turns)
  const maxTokens = maxTokensFor(request, model.limits.maxOutputTokens ?? abilities.maxOutputTokens)
  const budgetAllowed = !isPrefilled && !loopLacksThinking(turns)
  const reasoning = reasoningToWire({ effort: request.reasoning_effort, abilities, maxTokens, budgetAllowed }, report)
  const forcedToolChoice =
    abilities.forcedToolChoice === 'always' || (abilities.forcedToolChoice === 'without_thinking' && !reasoning.thinks)
  const structuredOutput = abilities.structuredOutput && !isPrefilled
  const budget = new WorkBudget()
  const answerFormat = answerFormatFor({ request, structuredOutput, forcedToolChoice, budget })
  if (answerFormat.kind === 'instruction') system.push({ type: 'text', text: answerFormat.text })
  // Thinking allows only default sampling.
  const refusesSampling = abilities.sampling === 'default_only' || reasoning.thinks || isWithoutSampling
  const stopSequences = stopSequencesFor(request.stop, report)
  const userId = userIdFor(request, report)
  const outputConfig: MessagesRequest['output_config'] = {
    ...(reasoning.effort === undefined ? {} : { effort: reasoning.effort }),
    ...(answerFormat.kind === 'schema' ? { format: { type: 'json_schema', schema: answerFormat.schema } } : {}),
  }
  return {
    model: model.upstream,
    max_tokens: maxTokens,
    ...systemToWire(system),
    messages: turns,
    ...samplingToWire(request, { isRefused: refusesSampling, takesBoth: abilities.sampling === 'both' }, report),
    ...(stopSequences.length === 0 ? {} : { stop_sequences: stopSequences }),
    ...toolsToWire({
      request,
      answerFormat,
      forcedToolChoice,
      strictTools: abilities.structuredOutput,
      budget,
      report,
    }),
    ...(reasoning.thinking === undefined ? {} : { thinking: reasoning.thinking }),
    ...(Object.keys(outputConfig).length === 0 ? {} : { output_config: outputConfig }),
    ...(userId === undefined ? {} : { metadata: { user_id: userId } }),
    ...(call.stream ? { stream: true as const } : {}),
  }
}

/** Without cache points, the system text is one string, however the caller has split it. */
function systemToWire(system: readonly (TextBlock | CachePointBlock)[]): Pick<MessagesRequest, 'system'> {
  const text = textOf(system)
  if (text === '') return {}
  if (!system.some(({ type }) => type === 'cache_point')) return { system: text }
  const blocks: (TextBlock | CachePointBlock)[] = []
  for (const block of system) {
    const last = blocks.at(-1)
    // Text between two points becomes one block.
    if (block.type === 'text' && last?.type === 'text')
      blocks[blocks.length - 1] = { type: 'text', text: `${last.text}\n${block.text}` }
    else blocks.push(block)
  }
  return { system: blocks }
}

// The API requires a limit, and rejects one above the model's own.
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
 * Maps `temperature` (0 to 2 in chat, at most 1 here) and `top_p`. If a model accepts only one, temperature takes precedence.
 * Reports lowered and dropped values.
 */
function samplingToWire(
  { temperature, top_p: topP }: ChatRequest,
  { isRefused, takesBoth }: { readonly isRefused: boolean; readonly takesBoth: boolean },
  report: (field: string) => void,
): { temperature?: number; top_p?: number } {
  const hasTemperature = typeof temperature === 'number'
  if (hasTemperature && (isRefused ? !changesNothing('temperature', temperature) : temperature > 1))
    report('temperature')
  if ((isRefused || (hasTemperature && !takesBoth)) && !changesNothing('top_p', topP)) report('top_p')
  if (isRefused) return {}
  const takesTopP = typeof topP === 'number' && (!hasTemperature || takesBoth)
  return { ...(hasTemperature ? { temperature: Math.min(temperature, 1) } : {}), ...(takesTopP ? { top_p: topP } : {}) }
}

/** Treatment of every chat field in a Messages request (Anthropic, "OpenAI SDK compatibility", field tables). */
export const MESSAGES_CHAT_FIELDS = translationTable({
  mapped: [
    ...['model', 'messages', 'temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'stream'],
    ...['stream_options', 'stop', 'tools', 'tool_choice', 'parallel_tool_calls', 'response_format'],
    ...['reasoning_effort', 'user', 'safety_identifier'],
  ],
  refused: ['n', 'audio', 'function_call', 'functions', 'modalities'],
  dropped: [
    ...['presence_penalty', 'frequency_penalty', 'logit_bias', 'logprobs', 'top_logprobs', 'seed', 'metadata'],
    ...['moderation', 'prediction', 'prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'],
    ...['service_tier', 'store', 'verbosity', 'web_search_options'],
  ],
} as const)
