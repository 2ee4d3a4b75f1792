/** Returns a function that creates a value at its first call and returns the same value afterwards. */
export function onDemand<Value extends object>(make: () => Value): () => Value {
  let made: Value | undefined
  return () => {
    made ??= make()
    return made
  }
}
