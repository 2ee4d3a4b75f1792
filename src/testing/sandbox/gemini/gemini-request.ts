import type { ChatPrompt, PromptTool } from '../model/chat-turn.ts'
import {
  asList,
  asNumber,
  asObject,
  asText,
  checkFields,
  type FieldRule,
  type Fields,
  inRange,
  isGiven,
  names,
  rule,
} from '../request-fields.ts'
import {
  headerList,
  jsonReply,
  type Refuse,
  refusals,
  type SandboxReply,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

/** Headers of every answer. Gemini sends no `retry-after` and no rate-limit headers. */
export const GEMINI_HEADERS = headerList(`
  server: scaffolding on HTTPServer2
  x-xss-protection: 0
  server-timing: gfet4t7; dur=312
  alt-svc: h3=":443"; ma=2592000
`)

const RPC = 'type.googleapis.com/google.rpc'
const OVERLOADED = 'The model is overloaded. Please try again later.'

/** Google's errors. A wait is in `RetryInfo`, never in a header. */
export const GEMINI_ERRORS = vendorErrors(
  {
    400: ['Request contains an invalid argument.', 'INVALID_ARGUMENT'],
    401: ['Request had invalid authentication credentials.', 'UNAUTHENTICATED'],
    403: ['The caller does not have permission', 'PERMISSION_DENIED'],
    404: ['The model is not found for API version v1beta, or is not supported for generateContent.', 'NOT_FOUND'],
    409: ['The operation was aborted.', 'ABORTED'],
    429: ['Resource has been exhausted (e.g. check quota).', 'RESOURCE_EXHAUSTED'],
    499: ['The operation was cancelled.', 'CANCELLED'],
    500: ['An internal error has occurred. Please retry.', 'INTERNAL'],
    501: ['Operation is not implemented.', 'UNIMPLEMENTED'],
    503: [OVERLOADED, 'UNAVAILABLE'],
    504: ['Deadline expired before operation could complete.', 'DEADLINE_EXCEEDED'],
    '4xx': ['Failed precondition.', 'FAILED_PRECONDITION'],
    '5xx': ['Unknown error.', 'UNKNOWN'],
  },
  (status, message, [name], waitSeconds) => {
    const wait = { '@type': `${RPC}.RetryInfo`, retryDelay: `${waitSeconds}s` }
    return googleError(status, name ?? '', message, waitSeconds === undefined ? [] : [wait])
  },
  {
    waitsInBody: true,
    quota() {
      const violation = {
        quotaMetric: 'generativelanguage.googleapis.com/generate_content_free_tier_requests',
        quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier',
        quotaValue: '0',
      }
      const details = [{ '@type': `${RPC}.QuotaFailure`, violations: [violation] }]
      const message = 'You exceeded your current quota, please check your plan and billing details.'
      return googleError(429, 'RESOURCE_EXHAUSTED', message, details)
    },
    badKey() {
      const info = { '@type': `${RPC}.ErrorInfo`, reason: 'API_KEY_INVALID', domain: 'googleapis.com' }
      return googleError(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [info])
    },
    streamEvent: () => googleEvent({ error: { code: 503, message: OVERLOADED, status: 'UNAVAILABLE' } }),
  },
)

/** Returns an error of any code and status. */
export function googleError(code: number, status: string, message: string, details: readonly object[]): SandboxReply {
  const error = { code, message, status, ...(details.length > 0 ? { details } : {}) }
  return jsonReply(code, GEMINI_HEADERS, { error }, 2)
}

/** Returns an event of a stream. Google's lines end with CR LF. */
export function googleEvent(value: unknown): string {
  return `data: ${JSON.stringify(value)}\r\n\r\n`
}

/** Rejects a request with INVALID_ARGUMENT, unless another status is given. */
export const refuseGemini: Refuse = refusals(GEMINI_ERRORS)

/** Makes operations of Gemini's API. Any key is accepted. */
export const geminiOperation = vendorOperations({
  vendor: 'gemini',
  errors: GEMINI_ERRORS,
  headers: GEMINI_HEADERS,
  indent: 2,
  access(call) {
    const key = call.headers['x-goog-api-key'] ?? new URLSearchParams(call.query).get('key') ?? ''
    const message =
      "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."
    if (key.trim() === '') refuseGemini(message, 403)
  },
})

/** Returns a member by its name in camel case. The vendor also accepts snake case. */
export function field(value: unknown, name: string): unknown {
  const object = asObject(value)
  return object[name] ?? object[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]
}

/** Rejects unknown members, like the vendor's JSON reader. */
export function checkKnownFields(object: Fields, known: ReadonlySet<string>, place: string): void {
  for (const name of Object.keys(object)) {
    const camelName = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    if (known.has(camelName)) continue
    const at = place === '' ? '' : ` at '${place}'`
    refuseGemini(`Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`)
  }
}

/** Returns a pattern for the paths of methods: `/v1beta/models/{model}:{method}`. Its groups are the model, encoded, and the method. */
export function methodPath(methods: string): RegExp {
  return new RegExp(`^/v1(?:beta)?/models/([^/:]+):(${methods})$`)
}

/** Ids without a generation that name models of the third one or later. */
const NEWER_IDS = /^gemini-(?:[a-z-]+-latest$|robotics-er-[2-9])/

/** Whether a model signs its function calls and gives them ids: the third generation and later. */
export function signsThoughts(model: string): boolean {
  return NEWER_IDS.test(model) || Number(/^gemini-(\d+)/.exec(model)?.[1] ?? 0) >= 3
}

const DATA_FIELDS = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
]

/** The parts of a content. */
export function partsOf(content: unknown): readonly unknown[] {
  return asList(asObject(content)['parts'])
}

/** Checks `contents`. Source: Google's documentation of function calling and thought signatures. */
export function checkGeminiContents(request: unknown, model: string): void {
  const contents = asList(asObject(request)['contents'])
  if (contents.length === 0) refuseGemini('* GenerateContentRequest.contents: contents is not specified')
  contents.forEach((content, position) => {
    checkContent(content, position)
  })
  checkCallTurns(contents)
  if (signsThoughts(model)) checkThoughtSignatures(contents)
}

function checkContent(content: unknown, position: number): void {
  const role = asObject(content)['role']
  if (role !== undefined && role !== 'user' && role !== 'model' && role !== 'function')
    refuseGemini('Please use a valid role: user, model.')
  const parts = partsOf(content)
  if (parts.length === 0)
    refuseGemini(`* GenerateContentRequest.contents[${position}].parts: contents.parts must not be empty.`)
  parts.forEach((part, index) => {
    const place = `contents[${position}].parts[${index}]`
    if (DATA_FIELDS.filter((name) => isGiven(field(part, name))).length !== 1)
      refuseGemini(
        `* GenerateContentRequest.${place}.data: required oneof field 'data' must have one initialized field`,
      )
    checkObject(field(field(part, 'functionCall'), 'args'), `${place}.function_call.args`)
    checkObject(field(field(part, 'functionResponse'), 'response'), `${place}.function_response.response`)
  })
}

function checkObject(value: unknown, place: string): void {
  if (!isGiven(value) || (typeof value === 'object' && !Array.isArray(value))) return
  refuseGemini(`Invalid value at '${place}' (type.googleapis.com/google.protobuf.Struct), ${JSON.stringify(value)}`)
}

function countOf(content: unknown, name: string): number {
  return partsOf(content).filter((part) => isGiven(field(part, name))).length
}

/** Calls follow the user or results; all results of one turn of calls are in the next turn. */
function checkCallTurns(contents: readonly unknown[]): void {
  contents.forEach((content, position) => {
    const before = contents[position - 1]
    const calls = countOf(content, 'functionCall')
    if (calls > 0 && (before === undefined || asObject(before)['role'] === 'model'))
      refuseGemini(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      )
    const responses = countOf(content, 'functionResponse')
    const called = countOf(before, 'functionCall')
    if (responses === 0 && called === 0) return
    if (called === 0)
      refuseGemini('Please ensure that function response turn comes immediately after a function call turn.')
    if (responses !== called)
      refuseGemini(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
  })
}

/** Since the last user turn, the first call of each step must be sent back with its original signature. */
function checkThoughtSignatures(contents: readonly unknown[]): void {
  const lastSpoken = contents.findLastIndex(
    (content) => asObject(content)['role'] !== 'model' && countOf(content, 'functionResponse') === 0,
  )
  contents.forEach((content, position) => {
    if (position <= lastSpoken || asObject(content)['role'] !== 'model') return
    const call = partsOf(content).find((part) => isGiven(field(part, 'functionCall')))
    if (call === undefined) return
    const signature = field(call, 'thoughtSignature')
    if (!isGiven(signature)) {
      const name = asText(asObject(field(call, 'functionCall'))['name'])
      refuseGemini(
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${position + 1}.`,
      )
    }
    if (!isThoughtSignature(signature)) refuseGemini('Corrupted thought signature.')
  })
}

/** Reads a request in the format of Gemini's `generateContent`. Never throws, whatever its shape. */
export function readContentsPrompt(body: unknown): ChatPrompt {
  const contents = asList(asObject(body)['contents'])
  const spoken = contents.filter((content) => asObject(content)['role'] !== 'model' && textOf(content) !== '')
  const lastSpoken = spoken.at(-1)
  const config = field(body, 'generationConfig')
  const schema = field(config, 'responseJsonSchema') ?? field(config, 'responseSchema')
  const calling = field(field(body, 'toolConfig'), 'functionCallingConfig')
  const thinking = field(config, 'thinkingConfig')
  return {
    texts: [
      textOf(field(body, 'systemInstruction')),
      ...contents.flatMap((content) => [textOf(content), ...resultTexts(content)]),
    ],
    lastUserText: textOf(lastSpoken),
    lastUserImages: partsOf(lastSpoken).filter((part) => isGiven(field(part, 'inlineData') ?? field(part, 'fileData')))
      .length,
    toolResults: resultTexts(contents.at(-1)),
    ...toolUse(readTools(body), calling),
    parallelToolCalls: true,
    json:
      field(config, 'responseMimeType') === 'application/json'
        ? { schema: isGiven(schema) ? asObject(schema) : undefined }
        : undefined,
    reasoning: isGiven(thinking) && field(thinking, 'thinkingBudget') !== 0 && thinks(thinking),
    maxTokens: asNumber(field(config, 'maxOutputTokens')),
    stop: asList(field(config, 'stopSequences')).map(asText),
    prefill: '',
  }
}

function thinks(thinking: unknown): boolean {
  return (
    ['thinkingLevel', 'thinkingBudget'].some((name) => isGiven(field(thinking, name))) ||
    field(thinking, 'includeThoughts') === true
  )
}

function textOf(content: unknown): string {
  return partsOf(content)
    .filter((part) => asObject(part)['thought'] !== true)
    .map((part) => asText(asObject(part)['text']))
    .join('')
}

/** Returns the answers of functions: the text of an answer that is one text, else its JSON. */
function resultTexts(content: unknown): string[] {
  return partsOf(content)
    .map((part) => field(part, 'functionResponse'))
    .filter(isGiven)
    .map((result) => {
      const response = asObject(asObject(result)['response'])
      const [only, ...others] = Object.values(response)
      return typeof only === 'string' && others.length === 0 ? only : JSON.stringify(response)
    })
}

function readTools(body: unknown): PromptTool[] {
  return asList(field(body, 'tools'))
    .flatMap((tool) => asList(field(tool, 'functionDeclarations')))
    .map((declaration) => ({
      name: asText(asObject(declaration)['name']),
      schema: asObject(field(declaration, 'parameters') ?? field(declaration, 'parametersJsonSchema')),
    }))
    .filter((tool) => tool.name !== '')
}

function toolUse(tools: readonly PromptTool[], calling: unknown): Pick<ChatPrompt, 'tools' | 'toolChoice'> {
  const allowed = asList(field(calling, 'allowedFunctionNames')).map(asText)
  const offered = allowed.length === 0 ? tools : tools.filter((tool) => allowed.includes(tool.name))
  const mode = field(calling, 'mode')
  if (mode === 'NONE') return { tools: offered, toolChoice: 'none' }
  return { tools: offered, toolChoice: mode === 'ANY' ? 'required' : 'auto' }
}

const MARK = 'sandbox-thought:'

// Both are in Google's documentation, for histories from other sources.
const PLACEHOLDERS = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']

/** Returns a signature for a part. It is opaque like a real one, and must be sent back with its part. */
export function thoughtSignature(id: string): string {
  return Buffer.from(`${MARK}${id}`).toString('base64')
}

/** Whether the stand-in created the signature, or it is a documented placeholder. */
function isThoughtSignature(value: unknown): boolean {
  if (typeof value !== 'string') return false
  return PLACEHOLDERS.includes(value) || Buffer.from(value, 'base64').toString('utf8').startsWith(MARK)
}

const REQUEST_FIELDS = names(
  'contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent model labels serviceTier',
)
const CONFIG_FIELDS = names(`
  stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount maxOutputTokens
  temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs speechConfig thinkingConfig
  imageConfig mediaResolution
`)
const LEVELS = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH']
const MODES = ['AUTO', 'NONE', 'ANY', 'VALIDATED']
const MAX_STOP_SEQUENCES = 5

const CONFIG = '* GenerateContentRequest.generation_config'
const CONFIG_RULES: readonly FieldRule[] = [
  rule('candidateCount', inRange(1, 1), 'Multiple candidates is not enabled for this model'),
  rule('temperature', inRange(0, 2), `${CONFIG}.temperature: temperature must be in the range [0.0, 2.0].`),
  rule(
    'maxOutputTokens',
    inRange(1, Number.POSITIVE_INFINITY),
    `${CONFIG}.max_output_tokens: max_output_tokens must be positive.`,
  ),
  rule(
    'stopSequences',
    (value) => asList(value).length <= MAX_STOP_SEQUENCES,
    `The number of stop sequences must not exceed ${MAX_STOP_SEQUENCES}.`,
  ),
]

/** Checks everything except contents. */
export function checkGeminiConfig(request: unknown, model: string): void {
  checkKnownFields(asObject(request), REQUEST_FIELDS, '')
  checkTools(request)
  const config = asObject(field(request, 'generationConfig'))
  checkKnownFields(config, CONFIG_FIELDS, 'generation_config')
  for (const name of ['presencePenalty', 'frequencyPenalty']) {
    if ((asNumber(field(config, name)) ?? 0) !== 0) refuseGemini(`Penalty is not enabled for this model: ${model}`)
  }
  const given = Object.fromEntries(CONFIG_RULES.map((row) => [row.field, field(config, row.field)]))
  checkFields(given, CONFIG_RULES, (text) => refuseGemini(text))
  checkThinking(field(config, 'thinkingConfig'), model)
  checkResponseSchema(config)
  const offersFunctions = asList(field(request, 'tools')).some((tool) => isGiven(field(tool, 'functionDeclarations')))
  if (offersFunctions && asText(field(config, 'responseMimeType')) === 'application/json' && !signsThoughts(model))
    refuseGemini("Function calling with a response mime type: 'application/json' is unsupported")
}

function checkTools(request: unknown): void {
  const declared = new Set<string>()
  asList(field(request, 'tools')).forEach((tool, position) => {
    const declarations = field(tool, 'functionDeclarations')
    if (!Array.isArray(declarations)) return
    if (declarations.length === 0)
      refuseGemini(
        `* GenerateContentRequest.tools[${position}].function_declarations: at least one function declaration is required.`,
      )
    declarations.forEach((declaration: unknown, index) => {
      const place = `tools[${position}].function_declarations[${index}]`
      const name = asText(asObject(declaration)['name'])
      if (!/^[a-zA-Z_][\w.:-]{0,63}$/.test(name))
        refuseGemini(
          `* GenerateContentRequest.${place}.name: Invalid function name. Must start with a letter or an underscore.`,
        )
      if (declared.has(name)) refuseGemini(`Duplicate function declaration found: ${name}`)
      declared.add(name)
      const parameters = field(declaration, 'parameters')
      if (isGiven(parameters) && isGiven(field(declaration, 'parametersJsonSchema')))
        refuseGemini(`* GenerateContentRequest.${place}: parameters and parameters_json_schema must not both be set.`)
      if (isGiven(parameters)) checkGeminiSchema(asObject(parameters), `${place}.parameters`)
    })
  })
  const calling = field(field(request, 'toolConfig'), 'functionCallingConfig')
  const mode = asText(field(calling, 'mode'))
  if (mode !== '' && !MODES.includes(mode))
    refuseGemini(`Invalid value at 'tool_config.function_calling_config.mode', "${mode}"`)
  const allowed = asList(field(calling, 'allowedFunctionNames'))
  if (allowed.length > 0 && mode !== 'ANY' && mode !== 'VALIDATED')
    refuseGemini('Function calling config is set without mode ANY or VALIDATED, allowed_function_names must be empty.')
  const unknown = allowed.find((name) => !declared.has(asText(name)))
  if (unknown !== undefined)
    refuseGemini(`allowed_function_names contains a function that is not declared: ${asText(unknown)}`)
}

function checkThinking(thinking: unknown, model: string): void {
  if (!isGiven(thinking)) return
  const level = field(thinking, 'thinkingLevel')
  const budget = asNumber(field(thinking, 'thinkingBudget'))
  if (isGiven(level)) {
    if (!signsThoughts(model)) refuseGemini('Thinking level is not supported for this model.')
    if (budget !== undefined) refuseGemini('You can only set only one of thinking budget and thinking level.')
    const name = asText(level).toUpperCase()
    if (!LEVELS.includes(name))
      refuseGemini(`Invalid value at 'generation_config.thinking_config.thinking_level', "${asText(level)}"`)
    if (name === 'MINIMAL' && !takesMinimalThinking(model))
      refuseGemini('Thinking level MINIMAL is not supported for this model. Please retry with other thinking level.')
  }
  if (budget === 0 && /-pro/.test(model)) refuseGemini('Budget 0 is invalid. This model only works in thinking mode.')
}

/** Neither pro models nor flash from 3.7 on support it, but flash-lite does. */
function takesMinimalThinking(model: string): boolean {
  const version = Number(/^gemini-(\d+(?:\.\d+)?)/.exec(model)?.[1] ?? 0)
  if (/-pro/.test(model)) return false
  return version < 3.7 || /-lite/.test(model)
}

function checkResponseSchema(config: unknown): void {
  const schema = field(config, 'responseSchema')
  const jsonSchema = field(config, 'responseJsonSchema')
  if (isGiven(schema) && isGiven(jsonSchema))
    refuseGemini('Only one of response_schema and response_json_schema may be set.')
  if ((isGiven(schema) || isGiven(jsonSchema)) && field(config, 'responseMimeType') !== 'application/json')
    refuseGemini(
      '* GenerateContentRequest.generation_config.response_mime_type: must be application/json when a response schema is set.',
    )
  if (isGiven(schema)) checkGeminiSchema(asObject(schema), 'generation_config.response_schema')
}

// Google's `Schema`: a part of OpenAPI 3.0. JSON Schema's other keywords are unknown names.
const KEYWORDS = names(`
  type format title description nullable enum maxItems minItems properties required minProperties maxProperties
  minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum
`)
const TYPES = ['STRING', 'NUMBER', 'INTEGER', 'BOOLEAN', 'ARRAY', 'OBJECT', 'NULL']

/** Rejects a schema outside of Google's subset of OpenAPI. `place` is the path for the error text. */
function checkGeminiSchema(schema: Fields, place: string): void {
  checkKnownFields(schema, KEYWORDS, place)
  const { type } = schema
  if (Array.isArray(type))
    refuseGemini(
      `Invalid JSON payload received. Unknown name "type" at '${place}': Proto field is not repeating, cannot start list.`,
    )
  if (type !== undefined && !TYPES.includes(String(type).toUpperCase()))
    refuseGemini(
      `Invalid value at '${place}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), "${String(type)}"`,
    )
  if (asList(schema['enum']).some((value) => typeof value !== 'string'))
    refuseGemini(`Invalid value at '${place}.enum[0]' (TYPE_STRING)`)
  Object.values(asObject(schema['properties'])).forEach((property, position) => {
    checkGeminiSchema(asObject(property), `${place}.properties[${position}].value`)
  })
  if (schema['items'] !== undefined) checkGeminiSchema(asObject(schema['items']), `${place}.items`)
  asList(schema['anyOf']).forEach((part, position) => {
    checkGeminiSchema(asObject(part), `${place}.any_of[${position}]`)
  })
  if (String(type).toUpperCase() === 'ARRAY' && schema['items'] === undefined)
    refuseGemini(`* ${place}.items: missing field.`)
}
