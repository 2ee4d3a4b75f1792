import type {
  CallToolResult,
  ContentBlock,
  Tool as ListedTool,
  ServerContext,
  ToolAnnotations,
} from '@modelcontextprotocol/server'
import * as z from 'zod'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import { isJsonObject } from '../core/json.ts'
import type { ObservedToolCall } from '../core/observer.ts'
import { checkRequest, jsonSchemaOf } from '../endpoints/schema.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Principal } from '../stores/principal.ts'
import { callGateway, type GatewayAnswer, type GatewayCall, jsonOf, refusedAnswer } from './gateway-call.ts'
import { protocolVersionOf, sessionOf } from './protocol-request.ts'

/** Answer of a tool. */
interface ToolAnswer {
  /** Value that matches the tool's output schema. The content also gets a copy as JSON text. */
  readonly structured: Record<string, unknown>
  /** Images, audio and links. They come before the copy. */
  readonly content?: readonly ContentBlock[]
}

/** Tool in the form that the server lists and calls. */
export interface Tool {
  readonly name: string
  readonly listed: ListedTool
  /**
   * Checks the arguments and makes the call.
   * @throws GatewayError `invalid_request` naming the invalid argument, and the errors of the gateway.
   */
  call(args: unknown, context: ToolContext): Promise<CallToolResult>
}

interface ToolDefinition<Input extends z.ZodObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** Effects of a call (MCP specification, "Tool annotations"). */
  readonly annotations: Required<Omit<ToolAnnotations, 'title'>>
  readonly input: Input
  readonly output: z.ZodObject
  answer(args: z.infer<Input>, context: ToolContext): Promise<ToolAnswer>
}

/** Creates a tool. Its schemas are converted to JSON Schema once. */
export function defineTool<Input extends z.ZodObject>(definition: ToolDefinition<Input>): Tool {
  const { name, title, description, annotations, input, output } = definition
  return {
    name,
    listed: {
      name,
      title,
      description,
      annotations: { title, ...annotations },
      inputSchema: { ...jsonSchemaOf(input, 'input'), type: 'object' },
      outputSchema: { ...jsonSchemaOf(output, 'output'), type: 'object' },
    },
    async call(args, context) {
      const { structured, content = [] } = await definition.answer(checkRequest<z.infer<Input>>(input, args), context)
      return {
        content: [...content, { type: 'text', text: JSON.stringify(structured) }],
        structuredContent: structured,
      }
    },
  }
}

/** Annotations of tools that only read from the gateway. */
export const READ_ONLY_ANNOTATIONS = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}

/** Annotations of tools that read and may call a vendor. */
export const LOOKS_UP_AT_VENDOR = { ...READ_ONLY_ANNOTATIONS, openWorldHint: true }

/** Annotations of tools that create something at a vendor: each call costs money and changes nothing that exists. */
export const MAKES = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true }

export const model = z.string().min(1).describe('Id of a model from list_models.')

/** Idempotency key of calls that cost money. */
export const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .optional()
  .describe('Makes retries safe: calls with the same key and arguments are executed and charged once in 24 hours.')

/** Field of endpoints that can stream: a tool cannot read a streamed answer, but it would be charged. */
export const noStream = z.literal(false).optional().describe('Tools return whole answers, so only false is accepted.')

export const taskId = z.string().min(1).max(10_000).describe('The task_id from submit_video.')

/** Image argument. */
export const picture = z
  .object({
    data: z.string().min(1).optional().describe('Image in base64, without a data: prefix.'),
    mime_type: z
      .string()
      .optional()
      .describe('Media type of data, such as image/png. Required with data, and by some models with url.'),
    url: z.string().min(1).optional().describe('Public https URL of the image, instead of data.'),
  })
  .describe('Image: data with mime_type, or url.')

/** Checked image argument: base64 data, or a URL. */
export type GivenPicture =
  | { readonly data: string; readonly mimeType: string }
  | { readonly url: string; readonly mimeType: string | undefined }

const IMAGE_TYPE = /^image\/[\w.+-]+$/i

/**
 * Checks an image argument.
 * @throws GatewayError `invalid_request` naming `param` unless it contains either data or a URL.
 */
export function givenPicture({ data, mime_type: mimeType, url }: z.infer<typeof picture>, param: string): GivenPicture {
  if (data !== undefined && url !== undefined) throw fault(param, 'takes either data or url')
  if (url !== undefined) {
    if (!/^https:\/\//i.test(url)) throw fault(`${param}.url`, 'must be an https URL')
    return { url, mimeType }
  }
  if (data === undefined) throw fault(param, 'needs data or url')
  if (mimeType === undefined || !IMAGE_TYPE.test(mimeType)) {
    throw fault(`${param}.mime_type`, 'must be the media type of the image, such as image/png')
  }
  return { data, mimeType }
}

/** Returns the image as one URL: its own, or a `data:` URL. */
export function pictureUrl(given: GivenPicture): string {
  return 'url' in given ? given.url : `data:${given.mimeType};base64,${given.data}`
}

function fault(param: string, text: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${text}`, param })
}

/** Authenticated caller, and the gateway that it calls. */
export interface Caller {
  readonly gateway: Gateway
  readonly principal: Principal
  readonly clock: Clock
  /** Identifies the caller again. @throws GatewayError if the key is no longer valid. */
  identify(): Promise<unknown>
  /** Notifies observers of a tool call; `undefined` if there are none. */
  readonly beginToolCall: BeginToolCall | undefined
}

/** @param tool Name of the tool, or `undefined` if there is no such tool. */
type BeginToolCall = (tool: string | undefined, message: ServerContext['mcpReq']) => ObservedToolCall

/** Maximum length of message ids for observers, in characters. */
const MAX_ID_LENGTH = 128

/** Returns a function that notifies observers of the tool calls in one request, or `undefined` if there are none. */
export function toolCallsIn(
  request: GatewayRequest,
  gateway: Gateway,
  principal: Principal,
): BeginToolCall | undefined {
  const { beginToolCall } = gateway
  if (beginToolCall === undefined) return undefined
  const { accountId, keyId } = principal
  return (tool, { id, method, _meta: meta }) => {
    const messageId = String(id)
    return beginToolCall({
      tool,
      method,
      protocolVersion: protocolVersionOf(request),
      sessionId: sessionOf(request),
      messageId: messageId.length <= MAX_ID_LENGTH ? messageId : undefined,
      accountId,
      keyId,
      header: (name) => request.header(name),
      metadata(name) {
        const value = meta !== undefined && Object.hasOwn(meta, name) ? meta[name] : undefined
        return typeof value === 'string' ? value : undefined
      },
    })
  }
}

/** Tool call by an authenticated caller. */
export interface ToolContext {
  readonly gateway: Gateway
  readonly principal: Principal
  /** Aborts when the caller disconnects or cancels. */
  readonly signal: AbortSignal
  readonly clock: Clock
  /**
   * Sends a request as the caller, through the whole pipeline.
   * @throws GatewayError if the gateway returns an error.
   */
  call(request: GatewayCall): Promise<GatewayAnswer>
  /**
   * Sends a request like `call`, for answers that are JSON objects.
   * @throws GatewayError also for other answers.
   */
  json(request: GatewayCall): Promise<Record<string, unknown>>
  /** Notifies the caller of progress, if the caller requested it. `progress` must increase with every notification. */
  progress(progress: { readonly progress: number; readonly total: number; readonly message: string }): Promise<void>
}

/** Binds a tool call to its caller: all its gateway requests are made as that caller, and as parts of `toolCall`. */
export function toolContext(
  { gateway, principal, clock, identify }: Caller,
  request: ServerContext,
  toolCall: ObservedToolCall | undefined,
): ToolContext {
  const { signal, _meta: meta } = request.mcpReq
  const handler = gateway.exchangeAs(principal, toolCall === undefined ? undefined : { toolCall })
  let isFirst = true
  const call = async (asked: GatewayCall): Promise<GatewayAnswer> => {
    // A waiting tool calls the gateway only as long as the caller's key is valid.
    if (!isFirst) await identify()
    isFirst = false
    const answer = await callGateway(handler, asked, { signal })
    if (answer.status >= 400) throw refusedAnswer(answer)
    return answer
  }
  return {
    gateway,
    principal,
    signal,
    clock,
    call,
    async json(asked) {
      const value = jsonOf((await call(asked)).body)
      if (isJsonObject(value)) return value
      throw new GatewayError('upstream_invalid_response')
    },
    async progress(progress) {
      const progressToken = meta?.progressToken
      if (progressToken === undefined || signal.aborted) return
      await request.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
    },
  }
}
