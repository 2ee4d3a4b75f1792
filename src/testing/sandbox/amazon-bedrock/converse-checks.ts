import { asList, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import { awsRefusal } from './bedrock-errors.ts'

const FIELDS = names(`
  messages system inferenceConfig toolConfig outputConfig additionalModelRequestFields guardrailConfig performanceConfig
  serviceTier requestMetadata promptVariables additionalModelResponseFieldPaths
`)
const BLOCKS = names('text image document video audio toolUse toolResult reasoningContent cachePoint guardContent')
const RESULT_BLOCKS = names('text json image document')
const TOOL_ID = /^[a-zA-Z0-9_-]{1,64}$/
const FILE_NAME = /^[a-zA-Z0-9()[\]-]+(?: [a-zA-Z0-9()[\]-]+)*$/

/** Rejects what the service rejects (Bedrock, reference of `Converse`, and its users' reports of 400 answers). */
export function checkConverse(request: Fields): void {
  for (const field of Object.keys(request)) if (!FIELDS.has(field)) refuse(`Unknown field ${field}`)
  const messages = asList(request['messages']).map(asObject)
  if (messages.length === 0) refuse('messages must not be empty')
  const seen: Seen = { calls: new Set(), files: new Set(), hasTools: isGiven(request['toolConfig']) }
  messages.forEach((message, index) => {
    if (message['role'] !== (index % 2 === 0 ? 'user' : 'assistant'))
      refuse('A conversation must alternate between user and assistant roles and start with a user message.')
    checkContent(asList(message['content']).map(asObject), seen, `messages.${index}`)
  })
  checkResults(messages)
  for (const block of asList(request['system']).map(asObject))
    if (!isGiven(block['cachePoint']) && asText(block['text']).trim() === '')
      refuse('The text field in system is blank.')
  checkInference(asObject(request['inferenceConfig']))
  if (isGiven(request['toolConfig'])) checkTools(asObject(request['toolConfig']))
  const schema = asObject(asObject(asObject(request['outputConfig'])['textFormat'])['structure'])['jsonSchema']
  if (isGiven(schema) && typeof asObject(schema)['schema'] !== 'string') refuse('jsonSchema.schema must be a string')
}

interface Seen {
  readonly calls: Set<string>
  readonly files: Set<string>
  readonly hasTools: boolean
}

function checkContent(blocks: readonly Fields[], seen: Seen, path: string): void {
  if (blocks.length === 0) refuse(`The content field at ${path} is empty.`)
  for (const block of blocks) {
    const [type = '', ...others] = Object.keys(block)
    if (!BLOCKS.has(type) || others.length > 0) refuse(`A block at ${path} must have one known member.`)
    if (type === 'text' && asText(block['text']).trim() === '') refuse(`The text field at ${path} is blank.`)
    if (type === 'toolUse' || type === 'toolResult') {
      const member = asObject(block[type])
      const id = asText(member['toolUseId'])
      if (!TOOL_ID.test(id)) refuse(`toolUseId at ${path} does not match the pattern`)
      if (!seen.hasTools)
        refuse('The toolConfig field must be defined when using toolUse and toolResult content blocks.')
      if (type === 'toolUse') seen.calls.add(id)
      else if (!seen.calls.has(id)) refuse(`The toolResult at ${path} has no toolUse.`)
      for (const inner of asList(member['content']).map(asObject))
        if (!Object.keys(inner).every((name) => RESULT_BLOCKS.has(name)))
          refuse(`A toolResult at ${path} is malformed.`)
    }
    if (type === 'image' || type === 'document') checkMedia(asObject(block[type]), type, seen, path)
  }
  if (blocks.some((block) => isGiven(block['document'])) && !blocks.some((block) => isGiven(block['text'])))
    refuse(`A document at ${path} needs a text beside it.`)
}

function checkMedia(media: Fields, type: string, seen: Seen, path: string): void {
  const formats = type === 'image' ? 'png jpeg gif webp' : 'pdf csv doc docx xls xlsx html txt md'
  if (!names(formats).has(asText(media['format']))) refuse(`The format at ${path} is unknown.`)
  if (asText(asObject(media['source'])['bytes']) === '') refuse(`The source at ${path} has no bytes.`)
  if (type === 'image') return
  const name = asText(media['name'])
  if (!FILE_NAME.test(name)) refuse(`The document name at ${path} has characters that are not allowed.`)
  if (seen.files.has(name)) refuse('Document names must be unique.')
  seen.files.add(name)
}

/** Every call of a turn has its result in the next one. */
function checkResults(messages: readonly Fields[]): void {
  messages.forEach((message, index) => {
    const calls = idsOf(message, 'toolUse')
    const results = new Set(idsOf(messages[index + 1] ?? {}, 'toolResult'))
    if (calls.some((id) => !results.has(id)) && index + 1 < messages.length)
      refuse('Expected toolResult blocks for the toolUse blocks of the turn before.')
  })
}

function idsOf(message: Fields, type: string): string[] {
  return asList(message['content'])
    .map((block) => asObject(asObject(block)[type])['toolUseId'])
    .filter((id) => typeof id === 'string')
}

function checkInference(config: Fields): void {
  for (const name of Object.keys(config))
    if (!names('maxTokens temperature topP stopSequences').has(name)) refuse(`Unknown field inferenceConfig.${name}`)
  for (const name of ['temperature', 'topP']) {
    const value = config[name]
    if (isGiven(value) && !(typeof value === 'number' && value >= 0 && value <= 1))
      refuse(`${name} must be from 0 to 1`)
  }
  const { maxTokens } = config
  if (isGiven(maxTokens) && !(Number.isInteger(maxTokens) && Number(maxTokens) >= 1))
    refuse('maxTokens must be at least 1')
}

function checkTools(config: Fields): void {
  const tools = asList(config['tools']).map(asObject)
  if (tools.length === 0) refuse('toolConfig.tools must not be empty')
  for (const tool of tools)
    if (!isGiven(tool['cachePoint']) && !isGiven(asObject(asObject(tool['toolSpec'])['inputSchema'])['json']))
      refuse('A tool must have a toolSpec with an inputSchema.')
  const choice = Object.keys(asObject(config['toolChoice']))
  if (choice.some((name) => !['auto', 'any', 'tool'].includes(name))) refuse('toolChoice must be auto, any or tool')
}

function refuse(message: string): never {
  throw awsRefusal(400, 'ValidationException', message)
}
