/** Returns the methods of a path below `/v1/files`, or `undefined` if there is no such path. */
export function fileMethods(segments: readonly string[]): readonly string[] | undefined {
  if (segments.length === 0) return ['GET', 'HEAD', 'POST']
  if (segments[0] === '') return undefined
  if (segments.length === 1) return ['GET', 'HEAD', 'DELETE']
  return segments.length === 2 && segments[1] === 'content' ? ['GET'] : undefined
}

/** Returns the methods of a path below `/v1/batches`, or `undefined` if there is no such path. */
export function batchMethods(segments: readonly string[]): readonly string[] | undefined {
  if (segments.length === 0) return ['GET', 'HEAD', 'POST']
  if (segments[0] === '') return undefined
  if (segments.length === 1) return ['GET', 'HEAD']
  return segments.length === 2 && segments[1] === 'cancel' ? ['POST'] : undefined
}

/** Returns the methods of a path below the batches of an endpoint, or `undefined` if there is no such path. */
export function inlineBatchMethods(segments: readonly string[]): readonly string[] | undefined {
  const [id, action] = segments
  if (id === undefined) return ['GET', 'HEAD', 'POST']
  if (id === '' || segments.length > 2) return undefined
  if (action === undefined) return ['GET', 'HEAD', 'DELETE']
  if (action === 'cancel') return ['POST']
  return action === 'results' ? ['GET'] : undefined
}
