import type { HeaderReader } from '../wire/headers.ts'

/**
 * Response headers as the bytes that arrived: names and values in turn. Most answers need one header or none, so each header is
 * decoded on demand. References the memory of the network read, so do not use it in objects that outlive the answer.
 */
export class RawHeaders implements HeaderReader {
  readonly #list: readonly Buffer[]

  constructor(list: readonly Buffer[]) {
    this.#list = list
  }

  get(name: string): string | undefined {
    const list = this.#list
    for (let index = 0; index + 1 < list.length; index += 2) {
      if (isNamed(list[index]!, name)) return list[index + 1]!.toString('latin1')
    }
    return undefined
  }
}

function isNamed(bytes: Buffer, name: string): boolean {
  if (bytes.length !== name.length) return false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]!
    const isUpperCase = byte >= 0x41 && byte <= 0x5a
    if ((isUpperCase ? byte + 0x20 : byte) !== name.charCodeAt(index)) return false
  }
  return true
}
