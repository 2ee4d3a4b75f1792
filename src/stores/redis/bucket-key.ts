/**
 * Name of the server's key for a bucket. In a cluster, buckets whose names agree behind their first colon
 * (`requests:key_1`, `tokens:key_1`) stand on one node, so that one script can take from all of them.
 */
export function bucketKey(prefix: string, bucket: string): string {
  return `${prefix}{${hashTag(bucket)}}:${bucket}`
}

/** What the server hashes to choose a node: never empty, and without the brace that would end it. */
function hashTag(bucket: string): string {
  return bucket.slice(bucket.indexOf(':') + 1).replaceAll('}', '') || '-'
}
