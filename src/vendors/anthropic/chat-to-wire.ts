import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { answerFormatFor } from './answer-format.ts'
import { droppedFields } from './chat-fields.ts'
import { toolsFor } from './chat-tools.ts'
import { conversationFrom } from './chat-turns.ts'
import { answerable, endsWithPrefill, loopLacksThinking } from './conversation-end.ts'
import type { MessagesEffort, MessagesRequest } from './messages-request.ts'
import { modelAbilities } from './model-abilities.ts'
import { reasoningFor } from './reasoning.ts'
import { samplingFor } from './sampling.ts'

/** Where and how the vendor is reached. */
export interface MessagesAddress {
  /** Path of the endpoint below the origin. */
  readonly path: string
  /** Value of the `anthropic-version` header: a date. */
  readonly version: string
}

/** Longest `metadata.user_id` that the API takes. */
const MAX_USER_ID_CHARACTERS = 256

/**
 * Translates a chat request into a Messages request.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field.
 */
export function chatToWire(call: VendorCall<ChatRequest>, address: MessagesAddress): WireRequest {
  const { body, dropped } = messagesRequestFor(call, address.version)
  return {
    path: address.path,
    headers: [
      'x-api-key',
      call.apiKey,
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
    dropped,
  }
}

function messagesRequestFor(
  call: VendorCall<ChatRequest>,
  version: string,
): { body: MessagesRequest; dropped: readonly string[] } {
  const { request, model } = call
  const abilities = modelAbilities(model.upstream)
  const dropped = new Set(droppedFields(request))
  const report = (field: string): void => void dropped.add(field)
  const conversation = answerable(
    conversationFrom(request.messages, { systemInPlace: abilities.systemInPlace, report }),
    abilities,
  )
  const { turns } = conversation
  const isPrefilled = endsWithPrefill(turns)
  const maxTokens = maxTokensFor(request, model.limits.maxOutputTokens ?? abilities.maxOutputTokens)
  const budgetAllowed = !isPrefilled && !loopLacksThinking(turns)
  const reasoning = reasoningFor({ effort: request.reasoning_effort, abilities, maxTokens, budgetAllowed }, report)
  const forcedToolChoice =
    abilities.forcedToolChoice === 'always' || (abilities.forcedToolChoice === 'without_thinking' && !reasoning.thinks)
  const structuredOutput = abilities.structuredOutput && !isPrefilled
  const answerFormat = answerFormatFor({ request, structuredOutput, forcedToolChoice })
  const system = answerFormat.kind === 'instruction' ? [...conversation.system, answerFormat.text] : conversation.system
  const stopSequences = stopSequencesFor(request.stop, report)
  const userId = userIdFor(request, report)
  const format =
    answerFormat.kind === 'schema' ? { type: 'json_schema' as const, schema: answerFormat.schema } : undefined
  const outputConfig = outputConfigFor(reasoning.effort, format)
  const body: MessagesRequest = {
    model: model.upstream,
    max_tokens: maxTokens,
    ...(system.length === 0 ? {} : { system: system.join('\n') }),
    messages: turns,
    ...samplingFor({ request, abilities, thinks: reasoning.thinks, version }, report),
    ...(stopSequences.length === 0 ? {} : { stop_sequences: stopSequences }),
    ...toolsFor({ request, answerFormat, forcedToolChoice, strictTools: abilities.structuredOutput, report }),
    ...(reasoning.thinking === undefined ? {} : { thinking: reasoning.thinking }),
    ...(outputConfig === undefined ? {} : { output_config: outputConfig }),
    ...(userId === undefined ? {} : { metadata: { user_id: userId } }),
    ...(call.stream ? { stream: true as const } : {}),
  }
  return { body, dropped: [...dropped] }
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

function outputConfigFor(
  effort: MessagesEffort | undefined,
  format: { type: 'json_schema'; schema: Record<string, unknown> } | undefined,
): MessagesRequest['output_config'] {
  if (effort === undefined && format === undefined) return undefined
  return { ...(effort === undefined ? {} : { effort }), ...(format === undefined ? {} : { format }) }
}
