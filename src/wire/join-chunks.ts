/** Joins the chunks of a body; a single chunk is not copied. */
export function joinChunks(chunks: readonly Uint8Array[]): Buffer {
  const only = chunks.length === 1 ? chunks[0] : undefined
  return only === undefined ? Buffer.concat(chunks) : asBuffer(only)
}

/** Returns a Buffer that shares the bytes. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
