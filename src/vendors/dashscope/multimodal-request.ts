import { Buffer } from 'node:buffer'
import { type MultimodalImageRequest, pictureSize } from '../../endpoints/images/multimodal/multimodal-image-request.ts'
import { ByteEdits } from '../shared/byte-edits.ts'
import { asBuffer, isJsonBlank } from '../shared/json-bytes.ts'
import type { VendorCall } from '../vendor.ts'
import { memberSpans } from './member-spans.ts'

const CLOSE_BRACE = 0x7d
const EDITED = ['model', 'parameters'] as const

/**
 * The body for the vendor: what the caller sent, with the vendor's model id, and for text to image with `parameters.size`
 * where it is missing, because the vendor's own default is another size than the one that is billed. The caller's bytes are
 * kept wherever they can be read in one way only.
 */
export function multimodalRequest(call: VendorCall<MultimodalImageRequest>): Uint8Array | string {
  const { request, model, bytes } = call
  const size = request.parameters?.size === undefined ? pictureSize(request, model) : undefined
  const edited = bytes === undefined ? undefined : editedBytes(asBuffer(bytes), request, model.upstream, size)
  if (edited !== undefined) return edited
  const parameters = size === undefined ? {} : { parameters: { ...request.parameters, size } }
  return JSON.stringify({ ...request, ...parameters, model: model.upstream })
}

function editedBytes(
  bytes: Buffer,
  request: MultimodalImageRequest,
  upstream: string,
  size: string | undefined,
): Buffer | undefined {
  const { model, parameters: given } = memberSpans(bytes, EDITED)
  // One whose name is written with escapes is there, but not found: a second one must not be added to it.
  if (model === undefined || (given === undefined) !== (request.parameters === undefined)) return undefined
  const parameters = size === undefined ? undefined : given
  const isAlone = size !== undefined && parameters === undefined
  const added = isAlone ? `,"parameters":${JSON.stringify({ size })}` : ''
  const edits = [{ ...model, text: `${JSON.stringify(upstream)}${added}` }]
  if (parameters !== undefined) {
    const inside = parameters.start + 1
    const comma = bytes[skipBlanks(bytes, inside)] === CLOSE_BRACE ? '' : ','
    edits.push({ start: inside, end: inside, text: `"size":${JSON.stringify(size)}${comma}` })
  }
  const inOrder = new ByteEdits()
  edits.sort((one, other) => one.start - other.start)
  for (const { start, end, text } of edits) inOrder.replace(start, end, Buffer.from(text))
  return inOrder.apply(bytes, bytes.length)
}

function skipBlanks(bytes: Buffer, from: number): number {
  let position = from
  while (isJsonBlank(bytes[position])) position += 1
  return position
}
