"""A small transformer that reads characters, written as for torch: with `torch` for `fgrad.compat` it runs there.

It learns the text of this project's records of decisions, letter by letter, and then writes in their manner.
"""

import pathlib
import time

import plots

import fgrad.compat as torch
from fgrad.compat.nn.functional import cross_entropy, embedding, gelu, layer_norm, linear, scaled_dot_product_attention

TEXT = "".join(path.read_text() for path in sorted(pathlib.Path(__file__).parents[1].glob("docs/adr/0*.md")))
LETTERS = sorted(set(TEXT))
WIDTH, HEADS, LAYERS, LENGTH, BATCH = 64, 4, 2, 32, 16


def parameters():
    """Return random parameters by name."""
    shapes = {"letters": (len(LETTERS), WIDTH), "places": (LENGTH, WIDTH)}
    for i in range(LAYERS):
        shapes |= {f"qkv{i}": (3 * WIDTH, WIDTH), f"join{i}": (WIDTH, WIDTH)}
        shapes |= {f"up{i}": (4 * WIDTH, WIDTH), f"down{i}": (WIDTH, 4 * WIDTH)}
    return {name: (0.05 * torch.randn(*shape)).requires_grad_() for name, shape in shapes.items()}


def attention(x, qkv, join):
    """Let every place look at those before it."""
    batch, length, _ = x.shape
    q, k, v = linear(x, qkv).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    seen = scaled_dot_product_attention(q, k, v, is_causal=True)
    return linear(seen.transpose(1, 2).reshape(batch, length, WIDTH), join)


def logits(p, tokens):
    """Return scores of the next letter at every place."""
    x = embedding(tokens, p["letters"]) + p["places"][: tokens.shape[1]]
    for i in range(LAYERS):
        x = x + attention(layer_norm(x, (WIDTH,)), p[f"qkv{i}"], p[f"join{i}"])
        x = x + linear(gelu(linear(layer_norm(x, (WIDTH,)), p[f"up{i}"])), p[f"down{i}"])
    return layer_norm(x, (WIDTH,)) @ p["letters"].T


def batch_of(tokens):
    """Return random stretches of the text, and the same one letter on."""
    starts = torch.randint(0, len(tokens) - LENGTH, (BATCH, 1))
    places = starts + torch.arange(LENGTH + 1)
    stretches = tokens[places]
    return stretches[:, :-1], stretches[:, 1:]


def adam_step(p, means, squares, step, rate=3e-3):
    """Change the parameters in place, after Kingma and Ba (2015), algorithm 1."""
    with torch.no_grad():
        for name, value in p.items():
            means[name].mul_(0.9).add_(value.grad, alpha=0.1)
            squares[name].mul_(0.99).addcmul_(value.grad, value.grad, value=0.01)
            scale = rate * (1 - 0.99**step) ** 0.5 / (1 - 0.9**step)
            value.addcdiv_(means[name], squares[name].sqrt().add_(1e-8), value=-scale)
            value.grad = None


def train(p, tokens, steps):
    """Train in place and return the loss at each step."""
    means, squares = ({name: torch.zeros_like(value) for name, value in p.items()} for _ in range(2))
    losses = []
    for step in range(1, steps + 1):
        inputs, targets = batch_of(tokens)
        loss = cross_entropy(logits(p, inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        adam_step(p, means, squares, step)
        losses.append(loss.item())
    return losses


def write(p, begin, count):
    """Return a text that goes on from its beginning, letter by letter."""
    tokens = [LETTERS.index(letter) for letter in begin]
    with torch.no_grad():
        for _ in range(count):
            scores = logits(p, torch.tensor([tokens[-LENGTH:]]))[0, -1]
            tokens.append(torch.multinomial(torch.softmax(scores / 0.7, dim=0), 1).item())
    return "".join(LETTERS[token] for token in tokens)


def main(out, steps=400):
    """Train, print the loss and a sample, draw the curve."""
    torch.manual_seed(0)
    tokens = torch.tensor([LETTERS.index(letter) for letter in TEXT])
    p = parameters()
    start = time.perf_counter()
    losses = train(p, tokens, steps)
    seconds = time.perf_counter() - start
    count = sum(value.numel() for value in p.values())
    print(f"{len(TEXT):,} letters, {count:,} parameters, {steps} steps in {seconds:.1f} s")
    for step in sorted({1, steps // 4, steps // 2, steps}):
        print(f"step {step:4d}   {losses[step - 1] / 0.6931:.2f} bits a letter")
    print("---", write(p, "The ", 160), "---", sep="\n")

    picture, axes = plots.figure(width=6)
    axes.plot([loss / 0.6931 for loss in losses])
    axes.set(xlabel="step", ylabel="bits a letter")
    plots.save(picture, out / "characters.svg")
    return losses


if __name__ == "__main__":
    plots.run(main, __doc__)
