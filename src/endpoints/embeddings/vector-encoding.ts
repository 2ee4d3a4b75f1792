import { GatewayError } from '../../core/errors.ts'
import type { VendorCall } from '../operation.ts'
import type { VendorFailure } from '../stream-transform.ts'
import type { EmbeddingsRequest, EmbeddingVector } from './embeddings-request.ts'

/** Writes numbers as base64 of little-endian float32, the default encoding of OpenAI's SDKs. */
export function encodeVector(numbers: readonly number[]): string {
  const bytes = new DataView(new ArrayBuffer(numbers.length * 4))
  for (let index = 0; index < numbers.length; index++) bytes.setFloat32(index * 4, numbers[index] ?? 0, true)
  return Buffer.from(bytes.buffer).toString('base64')
}

/** Reads base64 of little-endian float32. */
export function decodeVector(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.byteLength === 0 || bytes.byteLength % 4 !== 0) throw new GatewayError('upstream_invalid_response')
  const numbers = new Array<number>(bytes.byteLength / 4)
  for (let index = 0; index < numbers.length; index++) numbers[index] = bytes.readFloatLE(index * 4)
  if (!numbers.every(Number.isFinite)) throw new GatewayError('upstream_invalid_response')
  return numbers
}

/** Whether base64 of little-endian float32 has no NaN and no infinity: their exponent is all ones (IEEE 754). */
export function isFiniteVector(base64: string): boolean {
  const bytes = Buffer.from(base64, 'base64')
  for (let end = bytes.length - 1; end >= 3; end -= 4)
    if ((bytes[end]! & 0x7f) === 0x7f && bytes[end - 1]! >= 0x80) return false
  return true
}

/** Whether base64 holds float32: a request names no other type of numbers, such as `output_dtype: 'int8'`. */
export function asksForFloats(request: EmbeddingsRequest): boolean {
  return Object.entries(request).every(
    ([name, value]) => !name.endsWith('dtype') || (value ?? 'float') === 'float' || value === 'float32',
  )
}

/** Truncates a vector to its first `dimensions` numbers and normalises it again. */
export function truncateVector(numbers: readonly number[], dimensions: number): number[] {
  const cut = numbers.slice(0, dimensions)
  let squares = 0
  for (const value of cut) squares += value * value
  const length = Math.sqrt(squares)
  return length === 0 ? cut : cut.map((value) => value / length)
}

/** Size and encoding of the vectors that a caller requested. */
export interface VectorShape {
  /** Number of dimensions. `undefined` leaves vectors as the vendor sends them. */
  readonly dimensions: number | undefined
  readonly encoding: 'float' | 'base64'
  /** Whether vectors of the model lose their meaning when they are truncated. */
  readonly isFixed: boolean
}

/** Returns the requested size and encoding. */
export function vectorShape({ request, model }: VendorCall<EmbeddingsRequest>): VectorShape {
  return {
    dimensions: request.dimensions ?? undefined,
    encoding: request.encoding_format ?? 'float',
    isFixed: model.limits.truncatesDimensions === false,
  }
}

/** Number of float32 values in a base64 text of this length. */
export function base64Dimensions(length: number): number {
  return Math.floor((length * 3) / 16)
}

const BITS_PER_BYTE = 8

/** Returns why vectors cannot get the requested size, if one has fewer numbers. A vector of bits has them packed in bytes. */
export function sizeFailure(
  vectors: readonly EmbeddingVector[],
  { dimensions, isFixed }: VectorShape,
): VendorFailure | undefined {
  if (dimensions === undefined) return undefined
  for (const vector of vectors) {
    const size = typeof vector === 'string' ? base64Dimensions(vector.length) : vector.length
    if (size === dimensions || (size > dimensions && !isFixed) || size * BITS_PER_BYTE === dimensions) continue
    const message = `dimensions: the vendor of this model ignored ${dimensions} and sent vectors of ${size} numbers`
    return { kind: 'caller', status: 502, message, param: 'dimensions' }
  }
  return undefined
}

/** Converts a vendor's vector to the size and encoding that the caller requested. */
export function shapeVector(vector: EmbeddingVector, options: VectorShape): number[] | string {
  const isBase64 = typeof vector === 'string'
  const isOfSize =
    options.dimensions === undefined || (isBase64 && base64Dimensions(vector.length) === options.dimensions)
  if (isOfSize && isBase64 && options.encoding === 'base64') return vector
  let numbers: readonly number[] = isBase64 ? decodeVector(vector) : vector
  if (options.dimensions !== undefined && options.dimensions < numbers.length)
    numbers = truncateVector(numbers, options.dimensions)
  return options.encoding === 'base64' ? encodeVector(numbers) : (numbers as number[])
}
