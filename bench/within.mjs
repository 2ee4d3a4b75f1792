/** Waits for a promise, but no longer than `limitMs`. @throws Error that names `what` if it takes longer */
export function within(limitMs, what, promise) {
  let timer
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing after ${limitMs / 1_000} s`)), limitMs)
  })
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer))
}
