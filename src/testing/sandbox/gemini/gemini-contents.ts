import type { ChatPrompt, PromptTool } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../request-fields.ts'
import { field, refuseGemini, signsThoughts } from './gemini-errors.ts'

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
  if (role !== undefined && role !== 'user' && role !== 'model' && role !== 'function') {
    refuseGemini('Please use a valid role: user, model.')
  }
  const parts = partsOf(content)
  if (parts.length === 0) {
    refuseGemini(`* GenerateContentRequest.contents[${position}].parts: contents.parts must not be empty.`)
  }
  parts.forEach((part, index) => {
    const place = `contents[${position}].parts[${index}]`
    if (DATA_FIELDS.filter((name) => isGiven(field(part, name))).length !== 1) {
      refuseGemini(
        `* GenerateContentRequest.${place}.data: required oneof field 'data' must have one initialized field`,
      )
    }
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
    if (calls > 0 && (before === undefined || asObject(before)['role'] === 'model')) {
      refuseGemini(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      )
    }
    const responses = countOf(content, 'functionResponse')
    const called = countOf(before, 'functionCall')
    if (responses === 0 && called === 0) return
    if (called === 0) {
      refuseGemini('Please ensure that function response turn comes immediately after a function call turn.')
    }
    if (responses !== called) {
      refuseGemini(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
    }
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
export function isThoughtSignature(value: unknown): boolean {
  if (typeof value !== 'string') return false
  return PLACEHOLDERS.includes(value) || Buffer.from(value, 'base64').toString('utf8').startsWith(MARK)
}
