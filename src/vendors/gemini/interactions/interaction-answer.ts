import { Buffer } from 'node:buffer'
import { isJsonObject, objectOf, parseVendorJson } from '../../../core/json.ts'
import type { Usage } from '../../../core/usage.ts'
import { type EventLines, PassThroughStream } from '../../../endpoints/event-reader.ts'
import {
  type InteractionRequest,
  imageSize,
  pictureTokens,
} from '../../../endpoints/images/interactions/interaction-request.ts'
import { joinChunks } from '../../../wire/chunks.ts'
import { closingQuote, QUOTE } from '../../../wire/json-cursor.ts'
import { editMembers, type MemberChanges } from '../../../wire/json-edits.ts'
import { SSE_DONE, sseEvent } from '../../../wire/sse.ts'
import { googleErrorFrom, redactGoogleKeys } from '../../shared/google.ts'
import { invalidResponse } from '../../shared/invalid-response.ts'
import type { AnswerBody, AnswerIds, VendorCall } from '../../vendor.ts'
import { failureOf } from '../api-request.ts'
import { BareJsonTail } from '../chat-from-wire.ts'
import { countPictures, interactionUsage, isPicture, usageSoFar } from '../usage-from.ts'

// Longer strings are images or signatures. Ids, types and error texts are shorter.
const MAX_KEPT_BYTES = 16_384

/**
 * Passes a complete interaction through: the vendor's bytes with the caller's model id and ids. Images are not decoded. A `failed`
 * one without images is a refusal, and always has `steps` (API specification, "States and transitions"). Returns `undefined` if the
 * body is not an interaction.
 */
export function interactionFromWire(
  chunks: readonly Uint8Array[],
  call: VendorCall<InteractionRequest>,
): AnswerBody | undefined {
  const bytes = joinChunks(chunks)
  const outline = jsonOutline(bytes)
  if (!isJsonObject(outline) || typeof outline['status'] !== 'string') return undefined
  const images = countPictures(outline['steps'])
  const isRefusal = outline['status'] === 'failed' && images === 0 && !hasOutput(outline['steps'])
  const ids = interactionIds(outline['id'], call)
  const wanted = wantedMembers(outline, ids, call)
  return {
    chunks: isRefusal ? refused(bytes, wanted, call) : withMembers(bytes, wanted),
    usage: interactionUsage(outline['usage'], images),
    isRefusal,
    answerIds: ids.answerIds,
  }
}

/** Whether the steps contain output for the caller. */
function hasOutput(steps: unknown): boolean {
  if (!Array.isArray(steps)) return false
  return steps.some((step) => {
    if (!isJsonObject(step) || step['type'] !== 'model_output') return false
    return Array.isArray(step['content']) && step['content'].length > 0
  })
}

/** A refusal is small and quotes the vendor, whose text may contain a key to remove. */
function refused(bytes: Buffer, wanted: MemberChanges, call: VendorCall<InteractionRequest>): Uint8Array[] {
  return withMembers(Buffer.from(redactGoogleKeys(bytes.toString('utf8'), [call.apiKey])), wanted)
}

/** Returns the bytes with some members replaced, as chunks to avoid copying the rest. */
function withMembers(bytes: Buffer, wanted: MemberChanges): Uint8Array[] {
  const edits = editMembers(bytes, wanted)
  if (edits !== undefined) return edits.pieces(bytes)
  const members = [...wanted].map(([name, json]) => [name, parseVendorJson(json ?? 'null')])
  const parsed = parseVendorJson(bytes.toString('utf8'))
  return [Buffer.from(JSON.stringify({ ...objectOf(parsed), ...Object.fromEntries(members) }))]
}

/** Returns the members that the caller must read differently. */
function wantedMembers(
  outline: Record<string, unknown>,
  { id }: InteractionIds,
  { publicModel, request }: VendorCall<InteractionRequest>,
): MemberChanges {
  const wanted = new Map<string, string>()
  if (id !== undefined && outline['id'] !== id) wanted.set('id', JSON.stringify(id))
  if (outline['model'] !== publicModel) wanted.set('model', JSON.stringify(publicModel))
  if (!Array.isArray(outline['steps'])) wanted.set('steps', '[]')
  const previousId = request.previous_interaction_id
  if (previousId !== undefined && typeof outline['previous_interaction_id'] === 'string') {
    if (outline['previous_interaction_id'] !== previousId) {
      wanted.set('previous_interaction_id', JSON.stringify(previousId))
    }
  }
  return wanted
}

/**
 * Parses JSON with every long string replaced by an empty one, so that megabytes of base64 are neither decoded nor copied. Returns
 * `undefined` if the text is not JSON. Linear: a native search skips long strings.
 */
function jsonOutline(bytes: Buffer, start = 0, end: number = bytes.length): unknown {
  let text = ''
  let copied = start
  let open = bytes.indexOf(QUOTE, start)
  while (open !== -1 && open < end) {
    const close = closingQuote(bytes, open, end)
    if (close === -1) return undefined
    if (close - open > MAX_KEPT_BYTES) {
      text += bytes.toString('utf8', copied, open + 1)
      copied = close
    }
    open = bytes.indexOf(QUOTE, close + 1)
  }
  return parseVendorJson(text + bytes.toString('utf8', copied, end))
}

/** Ids of an answer. */
interface InteractionIds {
  /** The caller's id, which begins with `v1_`. Absent only if none was created. */
  readonly id: string | undefined
  /** Present if the answer can be continued. */
  readonly answerIds: AnswerIds | undefined
}

/** Parts of a call that decide the ids of its answer. */
type NamedCall = Pick<VendorCall<InteractionRequest>, 'conversation'> & {
  readonly request: {
    readonly store?: boolean | undefined
    readonly previous_interaction_id?: string | undefined
  }
}

/**
 * Returns the caller's id of an answer (API specification, "Interactions-style image request"): the vendor's id if it has the
 * public format, else a new one. Without storing, the vendor returns no id or an empty one; such an answer cannot be continued.
 */
function interactionIds(vendorId: unknown, call: NamedCall): InteractionIds {
  const isStored = call.request.store !== false
  const upstreamId = typeof vendorId === 'string' && vendorId !== '' ? vendorId : undefined
  if (isStored && upstreamId?.startsWith('v1_') === true) {
    return { id: upstreamId, answerIds: { id: upstreamId, upstreamId } }
  }
  const id = call.conversation?.freshId ?? upstreamId
  const isContinuable = isStored && id !== undefined && upstreamId !== undefined
  return { id, answerIds: isContinuable ? { id, upstreamId } : undefined }
}

/**
 * Replaces the ids in the events of one streamed answer by the caller's: its own, the continued one, and the model. An answer keeps
 * the id that the caller read first, even if the vendor's own arrives later.
 */
class InteractionNames {
  readonly #publicModel: string
  /** The call without images, which a long stream would otherwise keep in memory. */
  readonly #call: NamedCall
  #ids: InteractionIds | undefined

  constructor(call: VendorCall<InteractionRequest>) {
    const { store, previous_interaction_id } = call.request
    this.#publicModel = call.publicModel
    this.#call = { conversation: call.conversation, request: { store, previous_interaction_id } }
  }

  /** Ids of the answer, once the vendor has sent its own. */
  get answerIds(): AnswerIds | undefined {
    return this.#ids?.answerIds
  }

  /** Reads an event. Returns a function that renames it for the caller, or `undefined` if the names are right. */
  replacementFor(event: Record<string, unknown>): ((whole: unknown) => unknown) | undefined {
    const { interaction, interaction_id } = event
    if (isJsonObject(interaction)) {
      const members = this.#members(interaction)
      if (Object.entries(members).every(([name, value]) => interaction[name] === value)) return undefined
      return (whole) => (isJsonObject(whole) ? { ...whole, interaction: { ...objectIn(whole), ...members } } : whole)
    }
    if (typeof interaction_id !== 'string') return undefined
    const id = this.#idFor(interaction_id)
    if (id === undefined || id === interaction_id) return undefined
    return (whole) => (isJsonObject(whole) ? { ...whole, interaction_id: id } : whole)
  }

  #members(interaction: Record<string, unknown>): Record<string, unknown> {
    const id = this.#idFor(interaction['id'])
    return {
      ...(id === undefined ? {} : { id }),
      ...(interaction['model'] === undefined ? {} : { model: this.#publicModel }),
      ...(interaction['previous_interaction_id'] === undefined
        ? {}
        : { previous_interaction_id: this.#call.request.previous_interaction_id }),
    }
  }

  #idFor(vendorId: unknown): string | undefined {
    if (this.#ids?.answerIds === undefined) {
      const { id, answerIds } = interactionIds(vendorId, this.#call)
      const shownId = this.#ids?.id ?? id
      const isNamed = answerIds !== undefined && shownId !== undefined
      this.#ids = { id: shownId, answerIds: isNamed ? { ...answerIds, id: shownId } : undefined }
    }
    return this.#ids.id
  }
}

function objectIn(event: Record<string, unknown>): Record<string, unknown> {
  return objectOf(event['interaction'])
}

const DONE = Buffer.from(SSE_DONE)

// Statuses before the end. The last event has one of the others, including `requires_action`.
const UNFINISHED = new Set(['queued', 'in_progress'])

/**
 * Passes a streamed interaction on (Interactions API, "Streaming"): events pass as bytes, images are not decoded, and names of the
 * model or the answer become the caller's. The answer is complete with the event of its last status. `[DONE]` then follows, from
 * the vendor or from here. Errors end the stream and are not passed on.
 */
export class InteractionStream extends PassThroughStream {
  isRefusal = false
  readonly #apiKey: string
  readonly #pictureTokens: number
  readonly #names: InteractionNames
  readonly #tail = new BareJsonTail()
  #reported: unknown
  #pictures = 0
  /** Whether the current step is output for the caller, rather than a thought or a call. */
  #isOutput = true
  #hasOutput = false
  #hasLast = false

  constructor(call: VendorCall<InteractionRequest>, maxEventBytes?: number) {
    super(maxEventBytes)
    this.#apiKey = call.apiKey
    this.#names = new InteractionNames(call)
    this.#pictureTokens = pictureTokens(call.model, imageSize(call.request, call.model))
  }

  get usage(): Usage | undefined {
    return this.isComplete
      ? interactionUsage(this.#reported, this.#pictures)
      : usageSoFar(this.#reported, this.#pictures, this.#pictureTokens)
  }

  get answerIds(): AnswerIds | undefined {
    return this.#names.answerIds
  }

  override push(chunk: Uint8Array): Uint8Array | undefined {
    return super.push(this.#tail.push(chunk))
  }

  protected override get dropsComments(): boolean {
    return this.isComplete
  }

  protected override bodyEnded(): Buffer | undefined {
    if (this.isComplete) {
      this.finish()
      return DONE
    }
    // The vendor sends some errors after the events, as plain JSON.
    const tail = this.#tail.end()
    if (tail !== undefined) this.#failWith(parseVendorJson(tail))
    return undefined
  }

  protected override readEvent(event: EventLines, isRest: boolean): void {
    if (event.isEndMark) {
      this.hasContent = true
      this.finish()
      this.replaceEvent(DONE)
      return
    }
    if (this.#hasLast) {
      this.drop()
      return
    }
    const { bytes, dataStart, dataEnd, name } = event
    const outline = event.hasOneLine ? jsonOutline(bytes, dataStart, dataEnd) : parseVendorJson(event.text)
    if (!isJsonObject(outline)) {
      if (outline === undefined && isRest) this.failUnreadable(event, isRest)
      else this.#failWith(outline)
      return
    }
    const type = typeof outline['event_type'] === 'string' ? outline['event_type'] : (name ?? '')
    if (type === 'error' || name === 'error' || googleErrorFrom(outline) !== undefined) {
      this.#failWith(outline)
      return
    }
    this.#read(type, outline)
    const replacement = this.#names.replacementFor(outline)
    if (replacement === undefined) return
    const renamed = JSON.stringify(replacement(parseVendorJson(event.text)))
    if (event.hasOneLine) this.edit(dataStart, dataEnd, Buffer.from(renamed))
    else this.replaceEvent(Buffer.from(sseEvent(type, renamed)))
  }

  /** Ends the stream with the error in this value, or because the value is neither an event nor an error. */
  #failWith(value: unknown): void {
    const error = googleErrorFrom(value)
    this.fail(
      error === undefined
        ? invalidResponse('The vendor sent an event that cannot be read.')
        : failureOf(error, 0, [this.#apiKey]),
    )
  }

  #read(type: string, event: Record<string, unknown>): void {
    const { interaction, step } = event
    if (type === 'step.start') this.#isOutput = !isJsonObject(step) || step['type'] === 'model_output'
    if (type === 'step.delta') this.#readDelta(event['delta'])
    if (!isJsonObject(interaction)) return
    if (isJsonObject(interaction['usage'])) this.#reported = interaction['usage']
    const { status } = interaction
    const isLast = type === 'interaction.completed'
    const isWhole = isLast || (typeof status === 'string' && !UNFINISHED.has(status))
    if (!isWhole || type === 'interaction.created') return
    // A separate event may report the status before the usage.
    if (isLast) this.#hasLast = true
    this.#pictures = Math.max(this.#pictures, countPictures(interaction['steps']))
    // Output that the caller received was generated, and is charged.
    this.isRefusal = status === 'failed' && this.#pictures === 0 && !this.#hasOutput
    this.isComplete = true
    this.hasContent = true
  }

  #readDelta(delta: unknown): void {
    if (isPicture(delta)) this.#pictures += 1
    if (this.#isOutput) this.#hasOutput = true
    const text = isJsonObject(delta) ? delta['text'] : undefined
    this.countContent(typeof text === 'string' ? Buffer.byteLength(text) : 0)
  }
}
