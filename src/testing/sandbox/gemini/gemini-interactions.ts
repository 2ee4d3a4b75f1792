import { asObject } from '../model/loose-json.ts'
import { jsonReply, type SandboxOperation, type SandboxReply, streamReply } from '../sandbox-operation.ts'
import { GEMINI_HEADERS } from './gemini-errors.ts'
import { type InteractionAnswer, interactionAnswer, promptText } from './gemini-interactions-answer.ts'
import { checkInteraction } from './gemini-interactions-checks.ts'
import { checkInteractionKey, GEMINI_INTERACTIONS_ERRORS } from './gemini-interactions-errors.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * Gemini: `POST /v1beta/interactions` for pictures, whole or streamed. Interactions can be continued with the key that made
 * them, unless `store` was false.
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
  // Streams give an empty id where whole answers give none.
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

/** What both forms of the answer say at their end. */
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
