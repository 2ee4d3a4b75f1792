import { isJsonObject, isSet, objectOf, objectsIn } from '../../core/json.ts'
import { sseEvent } from '../../wire/sse.ts'
import { type CachedAnswers, hasHostedTool, hasOtherTier, namesFile } from '../answer-json.ts'
import type { ChatMessage } from '../chat/chat-request.ts'
import { pluginExtras } from '../chat/chat-surcharges.ts'
import { type CallerUrl, type CarriedState, type Deferral, defineEndpoint, type Endpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { checkRequest, fieldPath, jsonSchemaOf } from '../schema.ts'
import {
  type AnswerObject,
  type EndpointTexts,
  type KindOf,
  kindsByName,
  type RequestPlaces,
  requestTexts,
  type SaidFacts,
  type TextKind,
  type TextPart,
  type TextRole,
  type TextStep,
  type TextStreamReader,
  textsIn,
} from '../texts.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../token-estimate.ts'
import { addWebUrls, type ImagePlaces, remoteImages } from '../web-urls.ts'
import { ToolNames } from './chat-tools.ts'
import { isEnvelope, peekReasoning, reasoningIn } from './reasoning-envelope.ts'
import { responseObject } from './response-object.ts'
import { responsesMedia } from './responses-media.ts'
import { createInputTokensOperation, createResponsesOperation, type ResponsesOffer } from './responses-operation.ts'
import {
  inputItems,
  itemType,
  type ResponsesItem,
  type ResponsesRequest,
  responsesCacheTime,
} from './responses-request.ts'
import { inputTokensSchema, responsesSchema } from './responses-schema.ts'
import { KEEP_ALIVE_TYPE, keepAliveEvent, ResponsesStreamWriter } from './responses-stream-writer.ts'
import {
  imageToolEstimate,
  imageToolModels,
  RESPONSES_SURCHARGES,
  responsesExtras,
  responsesFieldParam,
  responsesSamplings,
  responsesSearches,
  responsesSurcharges,
} from './responses-surcharges.ts'
import { keptResponses, turnOf, withOwnItemIds } from './stored-responses.ts'

/** Returns the addresses that a vendor of the dialect fetches: images, files and MCP servers. */
function responsesUrls({ input, tools, prompt }: ResponsesRequest): readonly CallerUrl[] {
  const urls: CallerUrl[] = []
  if (Array.isArray(input)) {
    for (const [index, item] of input.entries()) {
      for (const member of ['content', 'output']) addAddresses(item[member], `input[${index}].${member}`, urls)
      addTools(item['tools'], `input[${index}].tools`, urls)
    }
  }
  addTools(tools, 'tools', urls)
  const variables = isJsonObject(prompt) ? prompt['variables'] : undefined
  if (isJsonObject(variables))
    for (const name in variables) addAddresses(variables[name], `prompt.variables.${name}`, urls)
  return urls
}

/** Namespaces and results of tool searches are nested lists of tools. */
function addTools(tools: unknown, path: string, urls: CallerUrl[]): void {
  if (!Array.isArray(tools)) return
  addAddresses(tools, path, urls)
  for (const [index, tool] of tools.entries()) {
    if (!isJsonObject(tool)) continue
    addAddresses(tool['input_image_mask'], `${path}[${index}].input_image_mask`, urls)
    addTools(tool['tools'], `${path}[${index}].tools`, urls)
  }
}

/** Adds the addresses of a part, or of each part of a list. Other members are arbitrary texts, such as output of a program. */
function addAddresses(part: unknown, path: string, urls: CallerUrl[]): void {
  if (Array.isArray(part)) {
    for (const [index, each] of part.entries()) if (!Array.isArray(each)) addAddresses(each, `${path}[${index}]`, urls)
  } else if (isJsonObject(part)) {
    for (const name in part) if (name.endsWith('_url')) addWebUrls({ [name]: part[name] }, path, urls)
  }
}

const IMAGES: ImagePlaces = { list: 'input', nested: ['content', 'output'], type: 'input_image', url: 'image_url' }

/** Tools that callers run. */
const TOOLS_OF_CALLERS: ReadonlySet<unknown> = new Set(['function', 'custom'])

/** Caching of Responses: only those that nobody can continue by their id. */
const cachedResponses: CachedAnswers<ResponsesRequest, ResponsesOffer> = {
  // An answer repeats `user`, `metadata` and similar members, so they decide it.
  leftOut: new Set(['stream', 'stream_options']),
  form: ({ stream }) => (stream === true ? 'stream' : ''),
  isDeterministic: ({ temperature }) => temperature === 0,
  isExcluded: (request) =>
    request.store !== false ||
    request.background === true ||
    isSet(request.previous_response_id) ||
    isSet(request.conversation) ||
    isSet(request['prompt']) ||
    hasOtherTier(request) ||
    hasHostedTool(request.tools, TOOLS_OF_CALLERS) ||
    pluginExtras(request).length > 0 ||
    namesFile(request.input) ||
    refersToItems(request.input),
  // Only the credential that generated encrypted reasoning can read it, and a cached answer does not name its credential.
  refusals: ['"content_filter"', '"refusal"', '"encrypted_content"'],
  idPaths: [['id'], ['response', 'id']],
}

/** Whether an item is a reference or adds tools. */
function refersToItems(input: ResponsesRequest['input']): boolean {
  return Array.isArray(input) && input.some((item) => item.type === 'item_reference' || item['tools'] !== undefined)
}

const kindOf = kindsByName({
  text: [
    'content',
    'text',
    'refusal',
    'output',
    'query',
    'queries',
    'logs',
    'stdout',
    'stderr',
    'description',
    'title',
  ],
  tool_arguments: ['arguments', 'input', 'code', 'command', 'commands', 'diff'],
  transcript: ['transcript'],
})

/** Every text inside a reasoning item is reasoning. */
const reasoningKind: KindOf = (name, owner) => (kindOf(name, owner) === undefined ? undefined : 'reasoning')

/** Kind of a string of an input item. Text in reasoning items and summary parts is reasoning. */
const inputKind: KindOf = (name, owner) =>
  String(owner['type']).startsWith('reasoning') || owner['type'] === 'summary_text'
    ? reasoningKind(name, owner)
    : kindOf(name, owner)

const REQUEST_PLACES: RequestPlaces = {
  kinds: { instructions: 'text', input: 'text' },
  kindOf: inputKind,
  last: ['tools', 'instructions', 'input'],
  roleOf(member, entry) {
    if (member === 'tools' || member === 'instructions') return 'system'
    if (member !== 'input') return undefined
    return isJsonObject(entry) ? roleOf(entry) : 'user'
  },
}

/** Where texts of the Responses dialect are. */
export const responsesTexts: EndpointTexts<ResponsesRequest> = {
  request: (request) => requestTexts(request, REQUEST_PLACES),
  jsonSchema: ({ text }) => (text?.format?.type === 'json_schema' ? text.format['schema'] : undefined),
  answer: {
    whole: ({ output }) => outputTexts(output, ['output']),
    replaced: withoutOtherForms,
    refusal: (answer, message) => ({
      ...answer,
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
      output: [refusalItem(message)],
    }),
    said: saidInResponse,
    stream: () => new ResponsesTextReader(),
  },
}

/** The answer is not stored, so follow-ups cannot refer to it. */
function saidInResponse(text: string, { request, model, nowMs, seed, isStream }: SaidFacts): AnswerObject | string {
  const shown = { ...(request as ResponsesRequest), input: '', store: false }
  const facts = { id: `resp_${seed}`, model, nowMs, request: shown, names: new ToolNames(), owner: { vendor: '' } }
  const writer = new ResponsesStreamWriter(facts)
  writer.begin()
  writer.text(text)
  const { lastEvent, response } = writer.done({})
  return isStream ? writer.take() + lastEvent : response
}

function roleOf(item: ResponsesItem): TextRole | undefined {
  const { role } = item
  if (typeof role === 'string') return role === 'developer' ? 'system' : (role as TextRole)
  return itemType(item).endsWith('_output') ? 'tool' : 'assistant'
}

function itemTexts(item: unknown, path: readonly (string | number)[], index: number): TextPart[] {
  const isReasoning = isJsonObject(item) && item['type'] === 'reasoning'
  return textsIn(item, path, { kindOf: isReasoning ? reasoningKind : kindOf, index })
}

function outputTexts(output: unknown, path: readonly (string | number)[]): TextPart[] {
  return Array.isArray(output) ? output.flatMap((item, index) => outputItemTexts(item, [...path, index], index)) : []
}

/** Returns the texts of an item, including carried reasoning that is not shown but readable for its caller. */
function outputItemTexts(item: unknown, path: readonly (string | number)[], index: number): TextPart[] {
  const texts = itemTexts(item, path, index)
  const carried = isJsonObject(item) ? hiddenReasoning(item) : ''
  if (carried !== '') {
    const at = [...path, CARRIED]
    texts.push({ id: fieldPath(at), kind: 'reasoning', index, text: carried, path: at })
  }
  return texts
}

/** Returns the reasoning that an item carries without showing it, or an empty string. */
function hiddenReasoning(item: AnswerObject): string {
  const thoughts = reasoningIn(item[CARRIED])
  const shown = shownReasoning(item)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('\n')
  return thoughts.every((thought) => shown.includes(thought)) ? '' : thoughts.join('\n')
}

/** Returns the parts in which an item shows reasoning. */
function shownReasoning({ summary, content }: AnswerObject): AnswerObject[] {
  return [summary, content].flatMap((parts) => objectsIn(parts))
}

const CARRIED = 'encrypted_content'
const ENCODED = /^[\w+/=:.-]*$/

/** Removes other forms of replaced texts: probabilities, and vendor state in which a text was replaced. */
function withoutOtherForms(value: unknown): void {
  withoutProbabilities(value)
  withoutChangedState(value)
}

function withoutChangedState(value: unknown): void {
  if (Array.isArray(value)) for (const entry of value) withoutChangedState(entry)
  else if (isJsonObject(value)) {
    if (value['type'] === 'reasoning' && isChangedState(value)) value[CARRIED] = ''
    for (const name of ['response', 'output', 'item']) withoutChangedState(value[name])
  }
}

/** Whether state was replaced by a text, or an item carries reasoning that it no longer shows. */
function isChangedState(item: AnswerObject): boolean {
  const carried = item[CARRIED]
  if (typeof carried !== 'string') return false
  return !ENCODED.test(carried) || (shownReasoning(item).length > 0 && hiddenReasoning(item) !== '')
}

/** Removes probabilities, because they name the tokens of a text. */
function withoutProbabilities(value: unknown): void {
  if (Array.isArray(value)) for (const entry of value) withoutProbabilities(entry)
  else if (isJsonObject(value)) {
    for (const name of Object.keys(value)) {
      if (name === 'logprobs' && Array.isArray(value[name])) value[name] = []
      else withoutProbabilities(value[name])
    }
  }
}

function refusalItem(message: string): AnswerObject {
  const content = [{ type: 'refusal', refusal: message }]
  return { id: 'msg_refused', type: 'message', status: 'completed', role: 'assistant', content }
}

/** Where an event's text is in the answer, by the type of the event without `response.` and its last segment. */
const PLACES: Readonly<Record<string, (event: AnswerObject) => readonly [(string | number)[], TextKind]>> = {
  output_text: (event) => [['content', numberAt(event, 'content_index'), 'text'], 'text'],
  refusal: (event) => [['content', numberAt(event, 'content_index'), 'refusal'], 'text'],
  reasoning_text: (event) => [['content', numberAt(event, 'content_index'), 'text'], 'reasoning'],
  reasoning_summary_text: (event) => [['summary', numberAt(event, 'summary_index'), 'text'], 'reasoning'],
  function_call_arguments: () => [['arguments'], 'tool_arguments'],
  mcp_call_arguments: () => [['arguments'], 'tool_arguments'],
  custom_tool_call_input: () => [['input'], 'tool_arguments'],
  code_interpreter_call_code: () => [['code'], 'tool_arguments'],
  apply_patch_call_operation_diff: () => [['operation', 'diff'], 'tool_arguments'],
  shell_call_command: (event) => [['action', 'commands', numberAt(event, 'command_index')], 'tool_arguments'],
}

/** Members that hold the whole of a text in the event that closes it, or that adds it. */
const WHOLE_MEMBERS = ['text', 'refusal', 'arguments', 'input', 'code', 'command', 'diff', 'transcript'] as const

function numberAt(event: AnswerObject, name: string): number {
  const value = event[name]
  return typeof value === 'number' ? value : 0
}

class ResponsesTextReader implements TextStreamReader {
  readonly repeats = true
  #response: AnswerObject = { id: 'resp_refused', object: 'response', output: [] }
  #created: AnswerObject | undefined
  #hasBegun = false
  #sent = 0

  read(event: AnswerObject): TextStep {
    const type = String(event['type'])
    const output = numberAt(event, 'output_index')
    const { response, item, part } = event
    if (isJsonObject(response)) {
      this.#response = response
      if (type === 'response.created') this.#created = event
      const isOver = !/\.(?:created|in_progress|queued)$/.test(type)
      const repeated = outputTexts(response['output'], ['response', 'output']).map((text) => dropPathPrefix(text, 1))
      return { added: [], repeated, ended: isOver ? [''] : [], isBare: false }
    }
    if (isJsonObject(item)) {
      const repeated = outputItemTexts(item, ['item'], output).map((text) => inOutput(text, output, []))
      return { added: [], repeated, ended: type.endsWith('.done') ? [`output[${output}].`] : [], isBare: false }
    }
    if (isJsonObject(part)) {
      const isSummary = type.includes('summary')
      const at = isSummary
        ? ['summary', numberAt(event, 'summary_index')]
        : ['content', numberAt(event, 'content_index')]
      const ofPart = isSummary || part['type'] === 'reasoning_text' ? reasoningKind : kindOf
      const parts = textsIn(part, ['part'], { kindOf: ofPart, index: output })
      const repeated = parts.map((text) => inOutput(text, output, at))
      return { added: [], repeated, ended: type.endsWith('.done') ? repeated.map(({ id }) => id) : [], isBare: false }
    }
    if (isJsonObject(event['annotation'])) return annotationStep(event, event['annotation'], output)
    return textStep(event, type, output)
  }

  more(event: AnswerObject, _part: TextPart, text: string): AnswerObject {
    return { ...event, delta: text }
  }

  replaced = withoutOtherForms

  sent({ type }: AnswerObject): void {
    if (type === 'response.created') this.#hasBegun = true
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  numbered(event: AnswerObject): boolean {
    // A keep-alive event repeats the number of the event before it.
    const number = event['type'] === KEEP_ALIVE_TYPE ? this.#sent - 1 : this.#sent++
    if (typeof event['sequence_number'] !== 'number' || event['sequence_number'] === number) return false
    event['sequence_number'] = number
    return true
  }

  refusal(message: string): string {
    const { usage = null } = this.#response
    const refused = { status: 'incomplete', incomplete_details: { reason: 'content_filter' }, usage }
    const response = { ...this.#response, ...refused, output: [refusalItem(message)] }
    const type = 'response.incomplete'
    let text = ''
    if (!this.#hasBegun && this.#created !== undefined)
      text += sseEvent('response.created', JSON.stringify({ ...this.#created, sequence_number: this.#sent++ }))
    return text + sseEvent(type, JSON.stringify({ type, sequence_number: this.#sent, response }))
  }
}

function textStep(event: AnswerObject, type: string, output: number): TextStep {
  const name = type.replace(/^response\./, '').replace(/\.[a-z]+$/, '')
  const [place, kind] = PLACES[name]?.(event) ?? [[name], name.includes('transcript') ? 'transcript' : 'text']
  const id = fieldPath(['output', output, ...place])
  const { delta } = event
  if (typeof delta === 'string' && type.endsWith('.delta')) {
    const isEmpty = delta === ''
    const added = isEmpty ? [] : [{ id, kind, index: output, text: delta, path: ['delta'] }]
    return { added, repeated: [], ended: [], isBare: !isEmpty }
  }
  const member = WHOLE_MEMBERS.find((candidate) => typeof event[candidate] === 'string')
  const isEnd = type.endsWith('.done')
  if (member === undefined || !(isEnd || type.endsWith('.added')))
    return { added: [], repeated: [], ended: [], isBare: false }
  const text = String(event[member])
  const repeated = text === '' ? [] : [{ id, kind, index: output, text, path: [member] }]
  return { added: [], repeated, ended: isEnd ? [id] : [], isBare: false }
}

/** The text of an annotation arrives and ends with its event. */
function annotationStep(event: AnswerObject, annotation: AnswerObject, output: number): TextStep {
  const at = ['content', numberAt(event, 'content_index'), 'annotations', numberAt(event, 'annotation_index')]
  const added = textsIn(annotation, ['annotation'], { kindOf, index: output }).map((text) => inOutput(text, output, at))
  return { added, repeated: [], ended: [`${fieldPath(['output', output, ...at])}.`], isBare: false }
}

/** Returns a text of an item or part, with its id in the whole answer. */
function inOutput(part: TextPart, output: number, at: readonly (string | number)[]): TextPart {
  return { ...part, id: fieldPath(['output', output, ...at, ...part.path.slice(1)]) }
}

function dropPathPrefix(part: TextPart, count: number): TextPart {
  return { ...part, id: fieldPath(part.path.slice(count)) }
}

/** Content that a vendor encrypted for the organization of a key (OpenAI, "Reasoning models", encrypted reasoning items). */
const encryptedState: CarriedState<ResponsesRequest> = {
  // All state of a conversation belongs to one key, so the newest one decides.
  inRequest: (request) => inputItems(request).findLast(isEncrypted)?.['encrypted_content'] as string | undefined,
  inAnswer: ({ output }) =>
    Array.isArray(output)
      ? output.filter(isEncrypted).map((item: ResponsesItem) => item['encrypted_content'] as string)
      : [],
}

function isEncrypted(item: ResponsesItem): boolean {
  const content: unknown = (item as ResponsesItem | null)?.['encrypted_content']
  return typeof content === 'string' && content !== '' && !isEnvelope(content)
}

const { objects: _served, ...withoutObjects } = keptResponses

/** The reasoning in a request, for vendors that look for their own. */
export class ResponsesConversation {
  readonly model: string
  readonly #request: ResponsesRequest

  constructor(request: ResponsesRequest) {
    this.model = request.model
    this.#request = request
  }

  /** A message of the chat dialect for each item that carries a vendor's state. */
  get messages(): readonly ChatMessage[] {
    return inputItems(this.#request).flatMap((item): ChatMessage[] => {
      const state = peekReasoning(item['encrypted_content'])
      if (state === undefined) return []
      const calls = Object.entries(state.calls ?? {}).map(([id, extra]) => ({
        id,
        type: 'function' as const,
        function: { name: '', arguments: '' },
        extra_content: extra,
      }))
      return [{ role: 'assistant', thinking_blocks: [...(state.blocks ?? [])], tool_calls: calls }]
    })
  }
}

/** Members that both endpoints of the dialect share. */
const common = {
  id: 'responses',
  kind: 'chat',
  errors: openaiErrors,
  exactMembers: new Map([
    ['parameters', 'value'],
    ['schema', 'value'],
  ]),
  isSticky: true,
  carried: encryptedState,
  kept: keptResponses,
  media: responsesMedia,
  callerUrls: responsesUrls,
  // A vendor of this dialect receives the request unchanged, and most fetch images themselves.
  remoteMedia: (request, { responses, chat }, model) =>
    (responses === undefined ? chat?.takesImageUrls?.(model) : responses.takesImageUrls) === false
      ? remoteImages(request, IMAGES)
      : undefined,
  conversation: (request) => new ResponsesConversation(request),
  texts: responsesTexts,
} as const satisfies Partial<Endpoint<ResponsesRequest, ResponsesOffer>>

/** Responses that run in the background (OpenAI API reference, "Create a model response", `background`). */
const backgroundResponses: Deferral<ResponsesRequest> = {
  applies: ({ background }) => background === true,
  webhookUrl: ({ webhook_url: url }) => (typeof url === 'string' ? url : undefined),
  runnable({ background: _background, stream: _stream, webhook_url: _url, ...request }) {
    // The vendor accepts options of the background only together with `background`.
    const { stream_options: _options, background_options: _window, ...rest } = request
    return rest
  },
  // The gateway runs the request as an ordinary call, without discount. Only the default has the same effect.
  dropped({ background_options: options }) {
    const window: unknown = isJsonObject(options) ? options['completion_window'] : undefined
    return window === undefined || window === null || window === 'soonest'
      ? []
      : ['background_options.completion_window']
  },
  begun: (request, facts) => responseObject({ ...facts, request }, { status: 'queued', output: [], usage: null }),
  record: recordOf,
  made: (answer, task) => ({ ...answer, id: task.id, background: true, created_at: recordOf(task)['created_at'] }),
  unmade(task, { state }) {
    const { deferred, error } = task.details
    const request = (deferred === undefined ? {} : JSON.parse(deferred.body)) as Partial<ResponsesRequest>
    const given = inputItems({ input: request.input ?? [] }).filter((item) => itemType(item) !== 'item_reference')
    const own = given.map((item) => withOwnItemIds(item, new Set()))
    const { previousId, input } = turnOf(request.previous_response_id ?? undefined, own)
    const failure =
      state === 'cancelled' ? null : { code: error?.code ?? 'server_error', message: error?.message ?? '' }
    return { previousId, input, response: { ...recordOf(task), status: state, error: failure } }
  },
  eventType(state, { details }) {
    return `response.${state === 'completed' ? String(details.facts['status'] ?? state) : state}`
  },
  eventData: ({ id }) => ({ id }),
  firstEvents(record, startingAfter) {
    const begun = ['response.created', 'response.in_progress'].map((type, number): string =>
      number > startingAfter ? sseEvent(type, JSON.stringify({ type, sequence_number: number, response: record })) : '',
    )
    return { text: begun.join(''), lastNumber: begun.length - 1 }
  },
  keepAlive: keepAliveEvent,
}

/** A submission whose outcome is being stored reads as queued. */
function recordOf({ state, details }: Parameters<Deferral['record']>[0]): Record<string, unknown> {
  const begun = details.deferred?.begun
  const status = state === 'in_progress' ? 'in_progress' : 'queued'
  return { ...objectOf(begun), background: true, status }
}

/** `POST /v1/responses` (OpenAI API reference, "Create a model response"). */
export const responsesEndpoint = defineEndpoint<ResponsesRequest, ResponsesOffer>({
  ...common,
  path: '/v1/responses',
  isBatchable: true,
  parse: (body) => checkRequest<ResponsesRequest>(responsesSchema(), body),
  requestSchema: () => jsonSchemaOf(responsesSchema(), 'input'),
  isStream: (request) => request.stream === true,
  estimate(request, inputTokens, { limits }) {
    const outputTokens = request.max_output_tokens ?? limits.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS
    const webSearches = responsesSearches(request)
    const cacheTime = responsesCacheTime(request)
    const otherModels = imageToolEstimate(request, inputTokens)
    const usage = { inputTokens, outputTokens }
    // Fast path of nearly every request: the code below allocates an object per line.
    if (cacheTime === 'none' && webSearches === undefined && otherModels.length === 0) return usage
    return {
      ...usage,
      ...(cacheTime === 'none' ? {} : { cacheWriteTokens: inputTokens }),
      ...(cacheTime === 'hour' ? { cacheWrite1hTokens: inputTokens } : {}),
      ...(webSearches === undefined ? {} : { webSearches }),
      ...(otherModels.length === 0 ? {} : { otherModels }),
    }
  },
  samplings: responsesSamplings,
  outputBound: { of: (request) => request.max_output_tokens ?? undefined, member: 'max_output_tokens' },
  mostOutputTokens: ({ responses, chat }, model) =>
    responses === undefined ? (model.limits.maxOutputTokens ?? chat?.mostOutputTokens?.(model)) : undefined,
  priceFields: responsesSurcharges,
  surcharges: RESPONSES_SURCHARGES,
  priceFieldParam: responsesFieldParam,
  extraFeatures: (request, { responses }) => (responses === undefined ? [] : responsesExtras(request)),
  innerModels: (request, { responses }) => (responses === undefined ? [] : imageToolModels(request)),
  extraFields: ['server_tool'],
  // A translation into chat has no hosted tools, and may lose the tier.
  priceFieldsAt(fields, { responses, chat }) {
    if (responses !== undefined) return fields
    const { service_tier } = fields
    return service_tier === undefined || chat?.leavesOut?.has('service_tier') === true ? {} : { service_tier }
  },
  callerUrls: (request) => {
    const { webhook_url: url } = request
    const urls = responsesUrls(request)
    return typeof url === 'string' ? [...urls, { url, param: 'webhook_url', isCalledHere: true }] : urls
  },
  createOperation: createResponsesOperation,
  cached: cachedResponses,
  deferral: backgroundResponses,
})

/**
 * `POST /v1/responses/input_tokens` (OpenAI API reference, "Get input token counts"). It is free and does not count towards token
 * limits; request limits apply. Keys for Responses may use it.
 */
export const inputTokensEndpoint = defineEndpoint<ResponsesRequest, ResponsesOffer>({
  ...common,
  path: '/v1/responses/input_tokens',
  kept: { ...withoutObjects, actions: {} },
  isFree: true,
  // Token counts produce no answer to store.
  parse: (body) => ({ ...checkRequest<ResponsesRequest>(inputTokensSchema(), body), store: false }),
  requestSchema: () => jsonSchemaOf(inputTokensSchema(), 'input'),
  isStream: () => false,
  estimate: () => ({ inputTokens: 0, outputTokens: 0 }),
  createOperation: createInputTokensOperation,
})
