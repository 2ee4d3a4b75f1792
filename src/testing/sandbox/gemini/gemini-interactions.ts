import { withoutFaultMarks } from '../fault.ts'
import { countTokens } from '../model/chat-turn.ts'
import { asObject, asText, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  jsonReply,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { thoughtSignature } from './gemini-contents.ts'
import { GEMINI_HEADERS } from './gemini-errors.ts'
import {
  asFormats,
  checkInteraction,
  checkInteractionKey,
  GEMINI_INTERACTIONS_ERRORS,
  inputBlocks,
  interactionId,
} from './gemini-interactions-checks.ts'
import { geminiImageModel, geminiPicture } from './gemini-pictures.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * Gemini: `POST /v1beta/interactions` for images, whole or streamed. Interactions can be continued with the key that created them,
 * unless `store` was false.
 */
export const GEMINI_INTERACTIONS: SandboxOperation = {
  vendor: 'gemini',
  operation: 'images',
  errors: GEMINI_INTERACTIONS_ERRORS,
  matches: ({ method, path }) => method === 'POST' && /^\/v1(?:beta)?\/interactions$/.test(path),
  promptText,
  answer(call, context) {
    checkInteractionKey(call)
    checkInteraction(call)
    const answer = interactionAnswer(call, context)
    return asObject(call.body)['stream'] === true ? streamed(answer) : whole(answer)
  },
}

function whole(answer: InteractionAnswer): SandboxReply {
  const { id, steps } = answer
  return jsonReply(200, GEMINI_HEADERS, {
    ...(id === undefined ? {} : { id }),
    ...lastMembers(answer),
    ...(steps.length === 0 ? {} : { steps }),
  })
}

function streamed(answer: InteractionAnswer): SandboxReply {
  // Streams have an empty id if JSON responses have none.
  const id = answer.id ?? ''
  const begun = { id, status: 'in_progress', object: 'interaction', model: answer.model }
  const pieces = [
    event('interaction.created', { interaction: begun }),
    event('interaction.status_update', { interaction_id: id, status: 'in_progress' }),
    ...answer.steps.flatMap(stepEvents),
    event('interaction.completed', { interaction: { id, ...lastMembers(answer) } }),
    'data: [DONE]\n\n',
  ]
  return streamReply(GEMINI_HEADERS, pieces, event('step.delta', { index: 0, delta: { type: 'text', text: ' more' } }))
}

/** Returns the members at the end of both forms of the answer. */
function lastMembers({ model, status, created, errors, usage }: InteractionAnswer): Json {
  return {
    object: 'interaction',
    model,
    status,
    created,
    updated: created,
    service_tier: 'standard',
    ...(errors.length === 0 ? {} : { errors }),
    ...(usage === undefined ? {} : { usage }),
  }
}

function stepEvents(step: Json, index: number): string[] {
  const { content, signature, type } = step
  const deltas = Array.isArray(content) ? (content as Json[]) : [{ type: 'thought_signature', signature }]
  return [
    event('step.start', { index, step: { type } }),
    ...deltas.map((delta) => event('step.delta', { index, delta })),
    event('step.stop', { index }),
  ]
}

function event(type: string, payload: Json): string {
  return `event: ${type}\ndata: ${JSON.stringify({ ...payload, event_type: type })}\n\n`
}

/** An interaction with its output steps. `steps` and `usage` are absent if the vendor omits them. */
export interface InteractionAnswer {
  /** Absent if nothing is stored. */
  readonly id: string | undefined
  readonly model: string
  readonly status: 'completed' | 'failed'
  readonly created: string
  readonly errors: readonly Json[]
  readonly steps: readonly Json[]
  readonly usage: Json | undefined
}

const THOUGHT_TOKENS = 24
const CAPTION = 'Here is your picture.'

/** Answers a request that passed the checks, deterministically. */
export function interactionAnswer(call: SandboxCall, context: AnswerContext): InteractionAnswer {
  const request = asObject(call.body)
  const model = asText(request['model'])
  const created = `${new Date(context.nowMs).toISOString().slice(0, 19)}Z`
  const id = request['store'] === false ? undefined : interactionId(credentialOf(call), context.id)
  const input = inputTokens(request, model)
  if (context.blocked) {
    const errors = [{ code: 'content_blocked', message: 'The picture was blocked by the safety filter.' }]
    return { id, model, status: 'failed', created, errors, steps: [], usage: context.usage(usageOf(input, 0, 0, 0)) }
  }
  const formats = asFormats(request['response_format'])
  const format = formats.find(({ type }) => type === 'image')
  const hasText = formats.length === 0 || formats.some(({ type }) => type === 'text')
  const picture = geminiPicture({
    model,
    size: givenText(format?.['image_size']),
    ratio: givenText(format?.['aspect_ratio']),
    mimeType: givenText(format?.['mime_type']),
    seed: `${asText(request['previous_interaction_id'])}\n${withoutFaultMarks(promptText(request))}`,
  })
  const level = asObject(request['generation_config'])['thinking_level']
  const thinks = isGiven(level) || geminiImageModel(model).alwaysThinks
  const image = { type: 'image', mime_type: picture.mimeType, data: picture.base64 }
  const steps = [
    ...(thinks ? [{ type: 'thought', signature: thoughtSignature(context.id) }] : []),
    // Text and image are in separate steps.
    ...(hasText ? [{ type: 'model_output', content: [{ type: 'text', text: CAPTION }] }] : []),
    { type: 'model_output', content: [image] },
  ]
  const text = hasText ? countTokens([CAPTION]) : 0
  const usage = context.usage(usageOf(input, picture.tokens, text, thinks ? THOUGHT_TOKENS : 0))
  return { id, model, status: 'completed', created, errors: [], steps, usage }
}

/** Returns the text of the input. */
export function promptText(body: unknown): string {
  return inputBlocks(asObject(body)['input'])
    .flatMap(({ type, text }) => (type === 'text' ? [asText(text)] : []))
    .join('\n')
}

function givenText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

interface InputTokens {
  readonly text: number
  readonly image: number
}

function inputTokens(request: Json, model: string): InputTokens {
  const pictures = inputBlocks(request['input']).filter(({ type }) => type === 'image').length
  return {
    text: countTokens([promptText(request), asText(request['system_instruction'])]),
    image: pictures * geminiImageModel(model).tokensPerReference,
  }
}

/** The output excludes thoughts, and its text is not itemised. */
function usageOf(input: InputTokens, imageTokens: number, textTokens: number, thoughtTokens: number): Json {
  const totalInput = input.text + input.image
  return {
    total_tokens: totalInput + imageTokens + textTokens + thoughtTokens,
    total_input_tokens: totalInput,
    input_tokens_by_modality: modalities({ text: input.text, image: input.image }),
    total_output_tokens: imageTokens + textTokens,
    output_tokens_by_modality: modalities({ image: imageTokens }),
    total_thought_tokens: thoughtTokens,
    total_cached_tokens: 0,
    total_tool_use_tokens: 0,
  }
}

function modalities(tokens: Readonly<Record<string, number>>): Json[] {
  return Object.entries(tokens)
    .filter(([, count]) => count > 0)
    .map(([modality, count]) => ({ modality, tokens: count }))
}
